import { expect, test } from "vitest";
import { isPublicAddress } from "../../../src/tool/web/web-address.ts";

test.each([
  "1.1.1.1",
  "93.184.215.14",
  "172.32.0.1",
  "100.128.0.1",
  "2606:4700::1111",
  "2a00:1450:4001:80e::200e",
  "::ffff:1.1.1.1",
  "64:ff9b::1.1.1.1",
])("%s is public", (address) => {
  expect(isPublicAddress(address)).toBe(true);
});

test.each([
  "0.0.0.0",
  "10.1.2.3",
  "100.64.0.1",
  "127.0.0.1",
  "127.255.255.254",
  "169.254.169.254",
  "172.16.0.1",
  "172.31.255.255",
  "192.168.1.1",
  "198.18.0.1",
  "224.0.0.1",
  "255.255.255.255",
  "::",
  "::1",
  "::127.0.0.1",
  "::ffff:127.0.0.1",
  "::FFFF:10.0.0.1",
  "0:0:0:0:0:ffff:a00:1",
  "64:ff9b::10.0.0.1",
  "64:ff9b:1::1",
  "2001:db8::1",
  "2002:7f00:1::",
  "fc00::1",
  "fd12:3456::1",
  "fe80::1",
  "fe80::1%eth0",
  "fec0::1",
  "ff02::1",
  "nonsense",
])("%s is not public", (address) => {
  expect(isPublicAddress(address)).toBe(false);
});
