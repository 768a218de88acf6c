import { acquireFileLease, acquireLease } from "../../../src/storage/json/lock.ts";

/** Takes the lease of a path, reports that, and holds it until it is ended. */
const [path = "", kind] = process.argv.slice(2);
const lease = await (kind === "file" ? acquireFileLease(path) : acquireLease(path));
process.stdout.write(`${lease.status}\n`);
process.stdin.resume();
