#!/usr/bin/python3
from scipy import integrate, linalg, optimize, sparse, stats

print(round(optimize.brentq(lambda x: x * x - 2, 0, 2), 6), integrate.quad(lambda x: x, 0, 1)[0])
print(sparse.eye(3).nnz, stats.norm.cdf(0), linalg.inv([[2.0]]).tolist())
