#!/usr/bin/env python3
"""Writes trips.csv: 90 days of a bike share with four stations.

The numbers are made up, and the same on every machine: they come from a small
generator of our own, not from a library whose sequence may change.

    sandglass run --out examples/data --force examples/data/generate.py
"""
import csv
import datetime
import os

state = 20250501


def rand(n):
    """A number from 0 to n-1 (Numerical Recipes' generator)."""
    global state
    state = (state * 1664525 + 1013904223) % 2**32
    return (state >> 8) % n


STATIONS = [("Central", 240), ("Harbour", 130), ("Museum", 90), ("University", 180)]

with open(os.path.join("/out", "trips.csv"), "w", newline="") as f:
    out = csv.writer(f, lineterminator="\n")
    out.writerow(["date", "station", "trips", "minutes", "rain_mm", "temp_c"])
    day = datetime.date(2025, 5, 1)
    for n in range(90):
        rain = max(0, rand(140) - 90) / 10
        temp = 11 + n * 13 / 90 + (rand(80) - 40) / 10 - rain / 2
        for name, base in STATIONS:
            weekend = day.weekday() >= 5
            factor = 1 + (temp - 15) / 40 - rain / 8
            if name == "University" and weekend:
                factor *= 0.35
            if name == "Harbour" and weekend:
                factor *= 1.6
            trips = max(3, int(base * factor) + rand(31) - 15)
            minutes = 9 + rand(90) / 10 + (6 if name == "Harbour" else 0)
            # A counter that was down now and then, as real data has it.
            shown = "" if rand(60) == 0 else trips
            out.writerow([day.isoformat(), name, shown, f"{minutes:.1f}", f"{rain:.1f}", f"{temp:.1f}"])
        day += datetime.timedelta(days=1)
