"""Counts the dry and the wet days' rows of the data set."""
rows = open("/data/trips.csv").read().splitlines()[1:]
wet = sum(float(row.split(",")[4]) > 0 for row in rows)
print(f"dry {len(rows) - wet}, wet {wet}")
