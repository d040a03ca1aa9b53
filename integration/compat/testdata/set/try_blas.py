#!/usr/bin/python3
# How many threads BLAS has after a product that it would share out.
import os
import numpy as np

np.ones((700, 700)) @ np.ones((700, 700))
print(len(os.listdir("/proc/self/task")))
