package launch

import (
	"io"
	"os"
)

// feed copies the caller's stdin into the program's pipe. It ends when either
// side does; a caller that never sends anything keeps only this goroutine.
func feed(to *os.File, from io.Reader) {
	io.Copy(to, from)
	to.Close()
}
