# A04: forkserver needs bind/listen on AF_UNIX. Python 3.14 made "forkserver" the default start
# method; it binds and listens on an AF_UNIX path, so a "no network" filter that denies
# bind()/listen() outright breaks every multiprocessing.Pool.
import multiprocessing as mp
def inc(x): return x + 1
if __name__ == "__main__":
    for how in ("forkserver", "spawn"):
        with mp.get_context(how).Pool(2) as pool: assert pool.map(inc, [1, 2, 3]) == [2, 3, 4], how
    print("PASS")
