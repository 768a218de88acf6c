import type { Path } from "./json-tree.ts";
import { isApi } from "../api.ts";
import type { Config, ProviderConfig } from "../schema.ts";

/** What is wrong with the address that is written for a provider, and where that is in the configuration. */
export interface AddressFault {
  readonly path: Path;
  readonly message: string;
}

/** The address that is written for a provider, in its place or the old one. */
export const writtenAddress = ({ options, api }: ProviderConfig): string | undefined =>
  options?.baseURL?.trim() || (isApi(api) ? undefined : api?.trim()) || undefined;

/** An address that is written and is none, such as one made of a variable that is not set. */
export function addressFault(id: string, provider: ProviderConfig): AddressFault | undefined {
  const { options, api } = provider;
  if (options?.baseURL === undefined && (api === undefined || isApi(api))) return undefined;
  const path = ["provider", id, ...(options?.baseURL === undefined ? ["api"] : ["options", "baseURL"])];
  const address = writtenAddress(provider);
  if (address === undefined)
    return {
      path,
      message:
        "is empty; write where the API is (https://…/v1), set the variable that it names, or take it out",
    };
  if (/^https?:\/\/[^/?#]/i.test(address) && URL.canParse(address)) return undefined;
  return { path, message: "is no address; it begins with http:// or https:// and a host" };
}

export function addressFaults({ provider = {} }: Config): AddressFault[] {
  return Object.entries(provider).flatMap(([id, one]) => addressFault(id, one) ?? []);
}
