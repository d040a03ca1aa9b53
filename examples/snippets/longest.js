// Reads the CSV from stdin and prints the mean length of a trip by station.
const lines = require('fs').readFileSync(0, 'utf8').trim().split('\n').slice(1);
const sums = {};
for (const line of lines) {
  const [, station, , minutes] = line.split(',');
  const s = (sums[station] ??= { n: 0, minutes: 0 });
  s.n += 1;
  s.minutes += Number(minutes);
}
const mean = Object.entries(sums).map(([name, s]) => ({ name, minutes: (s.minutes / s.n).toFixed(2) }));
mean.sort((a, b) => b.minutes - a.minutes);
console.log(JSON.stringify(mean));
