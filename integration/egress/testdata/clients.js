// The ways of Node to fetch.
const https = require("https");
(async () => {
  const r = await fetch("https://good.example/");
  process.stdout.write(await r.text());
  https.get("https://good.example/", (res) => res.on("data", (d) => process.stdout.write(d)));
})();
