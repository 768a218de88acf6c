import { openShared } from "../support/shared-state.ts";

/**
 * Changes one kind of shared state many times. Starts when stdin ends, so that several processes start
 * together.
 */
const [folder = "", kind = "", name = "", times = "0"] = process.argv.slice(2);
const state = openShared(kind, folder);

process.stdout.write("ready\n");
for await (const _ of process.stdin);
for (let number = 0; number < Number(times); number++) await state.add(`${name}${number}`);
