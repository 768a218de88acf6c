// Loaded into a program before its own code: tells how long its event loop was held at most, as processor time of the
// main thread, which does not count what else runs on the machine. SIGUSR2 tells it on stderr and begins anew.
const { writeSync } = require("node:fs");

const tickMs = 5;
let used = process.threadCpuUsage();
let longestMs = 0;

setInterval(() => {
  const { user, system } = process.threadCpuUsage(used);
  used = process.threadCpuUsage();
  longestMs = Math.max(longestMs, (user + system) / 1_000);
}, tickMs).unref();
process.on("SIGUSR2", () => {
  writeSync(2, `held ${longestMs.toFixed(1)}\n`);
  used = process.threadCpuUsage();
  longestMs = 0;
});
