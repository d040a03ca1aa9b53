# A03: multiprocessing needs /dev/shm. Multiprocessing locks and pools fail with EACCES/ENOENT
# because /dev/shm is missing, read-only or mode 0755.
import multiprocessing as mp, os, stat
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import shared_memory
def triple(x): return 3 * x
if __name__ == "__main__":
    st = os.stat("/dev/shm"); assert stat.S_ISDIR(st.st_mode)
    with mp.Lock(): pass
    q = mp.Queue(); q.put("x"); assert q.get(timeout=5) == "x"
    with ProcessPoolExecutor(2) as ex: assert list(ex.map(triple, range(4))) == [0, 3, 6, 9]
    shm = shared_memory.SharedMemory(create=True, size=1 << 16); shm.buf[0] = 7; shm.close(); shm.unlink()
    print("PASS")
