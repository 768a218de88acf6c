import { expect, test } from "vitest";
import { once } from "../../../src/base/async.ts";
import { UserError } from "../../../src/base/errors.ts";
import { importModule } from "../../../src/base/import-module.ts";
import { toAgentError } from "../../../src/model/failure.ts";

const missing = () => Promise.reject(new Error("Cannot find module './sdk-1.cjs'\nRequire stack:\n- /x"));

test("an unloadable module is reported with advice, and no provider is blamed", async () => {
  const thrown: unknown = await importModule(missing).catch((error: unknown) => error);
  const message =
    "A module of the program could not be loaded: Cannot find module './sdk-1.cjs'. It may have been updated or removed while it ran: start the agent again. If that does not help, reinstall Fairlead.";
  expect(thrown).toBeInstanceOf(UserError);
  const to = { provider: "work", baseURL: "https://api.example/v1" };
  expect(toAgentError(new Error("the call failed", { cause: thrown }), to)).toEqual({
    code: "internal",
    message,
    retryable: false,
  });
});

test("retries what could not be loaded, and loads the rest once", async () => {
  const attempts: number[] = [];
  const load = once(async () => {
    attempts.push(attempts.length);
    if (attempts.length === 1) throw new Error("not yet");
    return "here";
  });
  const first = await Promise.allSettled([load(), load()]);
  expect(first.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect([await load(), await load()]).toEqual(["here", "here"]);
  expect(attempts).toEqual([0, 1]);
});
