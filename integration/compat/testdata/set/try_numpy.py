#!/usr/bin/python3
import numpy as np

a = np.arange(6).reshape(2, 3)
print((a @ a.T).tolist(), round(np.linalg.det(np.array([[2.0, 1.0], [1.0, 3.0]])), 9))
print(np.fft.fft(np.ones(4)).real.tolist(), int((np.ones((600, 600)) @ np.ones((600, 600))).sum()))
