import { BlockList, isIPv4 } from "node:net";

/**
 * IPv4 addresses that are not public: loopback, private, link-local, carrier-grade NAT, test and multicast networks.
 * Source: IANA's registry of special-purpose addresses (RFC 6890 and its updates).
 */
const specialIpv4: readonly (readonly [network: string, prefix: number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
];

/** Public IPv6 addresses (RFC 4291), except the special ones below. */
const globalIpv6: readonly [network: string, prefix: number] = ["2000::", 3];
const specialIpv6: readonly (readonly [network: string, prefix: number])[] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
];

const special4 = createBlockList("ipv4", specialIpv4);
const global6 = createBlockList("ipv6", [globalIpv6]);
const special6 = createBlockList("ipv6", specialIpv6);

/** Whether the IP address belongs to the public internet: not to this computer, its networks, a cloud's metadata. */
export function isPublicAddress(address: string): boolean {
  const ipv4 = isIPv4(address) ? address : embeddedIpv4(address);
  if (ipv4 !== undefined) return !special4.check(ipv4, "ipv4");
  const [plain = ""] = address.split("%");
  return global6.check(plain, "ipv6") && !special6.check(plain, "ipv6");
}

/** Returns the IPv4 address in a mapped (`::ffff:…`) or NAT64 (RFC 6052) IPv6 address. */
function embeddedIpv4(address: string): string | undefined {
  const short = normalizeIpv6(address);
  const groups = /^(?:::ffff:|64:ff9b::)([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(short);
  if (groups === null) return undefined;
  const bytes = groups.slice(1).flatMap((group) => {
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
  return bytes.join(".");
}

/** Normalizes an IPv6 address as in URLs: `::FFFF:127.0.0.1` becomes `::ffff:7f00:1`. */
function normalizeIpv6(address: string): string {
  const url = `http://[${address}]/`;
  return URL.canParse(url) ? new URL(url).hostname.slice(1, -1) : address;
}

function createBlockList(type: "ipv4" | "ipv6", networks: readonly (readonly [string, number])[]): BlockList {
  const list = new BlockList();
  for (const [network, prefix] of networks) list.addSubnet(network, prefix, type);
  return list;
}
