"""A data job as a model writes it: reads a CSV, leaves a report and a chart in /out."""
import csv
import datetime
from collections import defaultdict
from statistics import mean

with open("/data/trips.csv", newline="") as f:
    rows = list(csv.DictReader(f))
good = [r for r in rows if r["trips"]]
print(f"{len(rows)} rows, {len(rows) - len(good)} without a count")

by_station = defaultdict(list)
by_week = defaultdict(int)
dry, wet = [], []
for r in good:
    trips = int(r["trips"])
    by_station[r["station"]].append(trips)
    by_week[datetime.date.fromisoformat(r["date"]).isocalendar()[1]] += trips
    (wet if float(r["rain_mm"]) > 1 else dry).append(trips)

with open("/out/report.md", "w") as out:
    out.write("# Bike trips, May to July 2025\n\n| station | days | trips | a day |\n| --- | ---: | ---: | ---: |\n")
    for name, trips in sorted(by_station.items()):
        out.write(f"| {name} | {len(trips)} | {sum(trips)} | {mean(trips):.1f} |\n")
    out.write(f"\nA dry day has {mean(dry):.1f} trips at a station, a wet one {mean(wet):.1f}.\n")

WIDTH, HEIGHT, BAR = 640, 280, 40
top = max(by_week.values())
with open("/out/chart.svg", "w") as svg:
    svg.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="11">\n')
    svg.write('<text x="20" y="20" font-size="14">Trips per calendar week</text>\n')
    for i, (week, trips) in enumerate(sorted(by_week.items())):
        h = round(trips / top * 200)
        x = 20 + i * (BAR + 3)
        svg.write(f'<rect x="{x}" y="{250 - h}" width="{BAR}" height="{h}" fill="#3b7dd8"/>')
        svg.write(f'<text x="{x + 20}" y="265" text-anchor="middle">{week}</text>')
        svg.write(f'<text x="{x + 20}" y="{245 - h}" text-anchor="middle">{trips}</text>\n')
    svg.write("</svg>\n")
print(f"busiest week: {max(by_week, key=by_week.get)} with {top} trips")
