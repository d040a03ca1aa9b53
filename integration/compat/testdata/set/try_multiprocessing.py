#!/usr/bin/python3
import multiprocessing as mp
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import shared_memory


def square(x):
    return x * x


if __name__ == "__main__":
    for method in mp.get_all_start_methods():
        context = mp.get_context(method)
        with context.Pool(2) as pool:
            squares = pool.map(square, range(5))
        queue = context.Queue()
        child = context.Process(target=queue.put, args=("put",))
        child.start()
        print(method, squares, queue.get())
        child.join()
    memory = shared_memory.SharedMemory(create=True, size=1 << 20)
    memory.buf[0] = 7
    print(memory.buf[0])
    memory.close()
    memory.unlink()
    with ProcessPoolExecutor() as pool:
        print(list(pool.map(square, range(3))), os.cpu_count(), len(os.sched_getaffinity(0)))
