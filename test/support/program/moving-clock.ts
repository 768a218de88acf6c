import { readFileSync } from "node:fs";
import { join } from "node:path";

// Loaded before the program: adds the milliseconds in a file of its home to its clock, whenever the clock is
// read.
const path = join(process.env["HOME"] ?? "", "clock");
const now = Date.now;
Date.now = () => now() + Number(readFileSync(path, "utf8"));
