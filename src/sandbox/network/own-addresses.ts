import { lookup } from "node:dns";
import { BlockList, isIP, isIPv4, type LookupFunction } from "node:net";
import { networkInterfaces } from "node:os";

/** Loopback, unspecified and link-local networks; the last have the metadata services of clouds. */
const ownNetworks: readonly (readonly [network: string, prefix: number])[] = [
  ["127.0.0.0", 8],
  ["0.0.0.0", 8],
  ["169.254.0.0", 16],
  ["::", 127],
  ["fe80::", 10],
];

/** Returns a check whether an IP address belongs to this computer. */
export function createOwnAddressCheck(): (address: string) => boolean {
  const own = new BlockList();
  for (const [network, prefix] of ownNetworks) own.addSubnet(network, prefix, toFamily(network));
  for (const { address } of Object.values(networkInterfaces()).flatMap((list) => list ?? []))
    own.addAddress(address, toFamily(address));
  return (address) => isIP(address) !== 0 && own.check(address, toFamily(address));
}

/**
 * Creates a lookup that omits addresses of this computer: the name of an allowed host may resolve to any address.
 * Fails if no other address is left.
 */
export function createForeignLookup(isOwn: (address: string) => boolean): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error !== null) return callback(error, []);
      const foreign = found.filter(({ address }) => !isOwn(address));
      const [first] = foreign;
      if (first === undefined) return callback(new Error(`${hostname} is an address of this computer`), []);
      return options.all === true ? callback(null, foreign) : callback(null, first.address, first.family);
    });
  };
}

function toFamily(address: string): "ipv4" | "ipv6" {
  return isIPv4(address) ? "ipv4" : "ipv6";
}
