#!/usr/bin/python3
import os
import matplotlib
import matplotlib.pyplot as plt

plt.plot([1, 4, 9])
plt.title("squares")
plt.savefig("/tmp/a.png")
cache = matplotlib.get_cachedir()
print(matplotlib.get_backend(), open("/tmp/a.png", "rb").read(8))
print(cache, [name.split("-")[0] for name in os.listdir(cache)])
