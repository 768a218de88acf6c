import { networkInterfaces } from "node:os";
import { expect, test } from "vitest";
import { formatTarget, matchesHost, parseTarget } from "../../../src/sandbox/network/host-pattern.ts";
import { createForeignLookup, createOwnAddressCheck } from "../../../src/sandbox/network/own-addresses.ts";

test.each([
  ["registry.npmjs.org", "registry.npmjs.org:443", true],
  ["registry.npmjs.org", "REGISTRY.npmjs.org.:80", true],
  ["Registry.npmjs.org", "registry.npmjs.org:443", true],
  ["registry.npmjs.org", "registry.npmjs.org:8080", false],
  ["registry.npmjs.org:8080", "registry.npmjs.org:8080", true],
  ["registry.npmjs.org", "registry.npmjs.org.evil.example:443", false],
  ["*.github.com", "api.github.com:443", true],
  ["*.github.com", "a.b.github.com:443", true],
  ["*.github.com", "github.com:443", false],
  ["*.github.com", "evilgithub.com:443", false],
  ["*", "example.org:443", true],
  ["*", "example.org:22", false],
  ["*:*", "localhost:5432", false],
  ["*", "127.0.0.1:80", false],
  ["*", "[::1]:443", false],
  ["localhost:5432", "localhost:5432", true],
])("the host %s and a connection to %s: %s", (pattern, address, isAllowed) => {
  const target = parseTarget(address);
  expect(target && matchesHost(pattern, formatTarget(target))).toBe(isAllowed);
});

test.each(["example.org", "example.org/path:80", "", ":80", "a b:80"])("%j is not a target", (text) => {
  expect(parseTarget(text)).toBeUndefined();
});

test("addresses of this computer and of its cloud are recognized", () => {
  const isOwn = createOwnAddressCheck();
  const interfaces = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const own = [
    "127.0.0.1",
    "127.9.9.9",
    "0.0.0.0",
    "169.254.169.254",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "fe80::1",
  ];
  for (const address of [...own, ...interfaces.map(({ address: one }) => one)])
    expect(isOwn(address)).toBe(true);
  for (const address of ["93.184.216.34", "2606:2800:220:1::1", "localhost"])
    expect(isOwn(address)).toBe(false);
});

test("a name that leads to this computer is not resolved", async () => {
  const lookup = createForeignLookup(createOwnAddressCheck());
  const resolve = (all: boolean) =>
    new Promise((done) => lookup("localhost", { all }, (error, found) => done(error?.message ?? found)));
  expect(await resolve(true)).toBe("localhost is an address of this computer");
  expect(await resolve(false)).toBe("localhost is an address of this computer");
});
