package cpus

import (
	"reflect"
	"testing"

	"golang.org/x/sys/unix"
)

func own(t *testing.T) int {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	return set.Count()
}

func TestCount(t *testing.T) {
	have := own(t)
	for milli, want := range map[int64]int{1: 1, 500: 1, 1000: 1, 1001: 2, 2000: 2, 4096000: 4096} {
		if got := Count(milli); got != min(want, have) {
			t.Errorf("%d thousandths: %d CPUs, want %d of %d", milli, got, want, have)
		}
	}
}

// Live sets of one CPU are spread evenly, whatever the seed, and a CPU that was
// released is the next to be taken.
func TestTakeSpreads(t *testing.T) {
	// A range of offsets that nobody else locks cannot be had: other sandboxes may
	// run here. So the choice is tried on CPUs that no host has.
	all := []int{1000, 1001, 1002}
	var sets []*Set
	take := func() int {
		t.Helper()
		fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		s := &Set{fd: fd, held: true}
		s.choose(all, 1)
		sets = append(sets, s)
		if len(s.List) != 1 {
			t.Fatalf("%v, want one CPU", s.List)
		}
		return s.List[0]
	}
	count := map[int]int{}
	for range 6 {
		count[take()]++
	}
	if want := map[int]int{1000: 2, 1001: 2, 1002: 2}; !reflect.DeepEqual(count, want) {
		t.Errorf("%v, want %v", count, want)
	}
	sets[1].Release() // 1001, in the first round
	if got := take(); got != 1001 {
		t.Errorf("CPU %d, want 1001, which was released", got)
	}
	for _, s := range sets {
		s.Release()
	}
}

func TestTakeNothingToChoose(t *testing.T) {
	for _, n := range []int{0, own(t), own(t) + 1} {
		s := Take(n, 7)
		if s.List != nil || s.Mask() != nil || s.String() != "" {
			t.Errorf("%d of %d CPUs: %+v, want the caller's own", n, own(t), s)
		}
		s.Release()
	}
}

func TestTake(t *testing.T) {
	if own(t) < 2 {
		t.Skip("SKIP(want two CPUs, have one)")
	}
	var set unix.CPUSet
	unix.SchedGetaffinity(0, &set)
	s := Take(1, 3)
	defer s.Release()
	if len(s.List) != 1 || !set.IsSet(s.List[0]) {
		t.Fatalf("%v, want one of the caller's CPUs", s.List)
	}
}

func TestMask(t *testing.T) {
	for _, c := range []struct {
		list []int
		mask []byte
		text string
	}{
		{[]int{0}, []byte{1, 0, 0, 0, 0, 0, 0, 0}, "0"},
		{[]int{1, 9}, []byte{2, 2, 0, 0, 0, 0, 0, 0}, "1,9"},
		{[]int{64}, []byte{0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, "64"},
	} {
		s := &Set{List: c.list}
		if got := s.Mask(); !reflect.DeepEqual(got, c.mask) || s.String() != c.text {
			t.Errorf("%v: % x %q, want % x %q", c.list, got, s.String(), c.mask, c.text)
		}
	}
}
