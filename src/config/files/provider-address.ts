import type { Path } from "./json-tree.ts";
import { isApi } from "../api.ts";
import type { Config, ProviderConfig } from "../schema.ts";

export interface AddressProblem {
  readonly path: Path;
  readonly message: string;
}

/** The base URL from `options.baseURL` or the old place `api`. */
export const getBaseUrl = ({ options, api }: ProviderConfig): string | undefined =>
  options?.baseURL?.trim() || (isApi(api) ? undefined : api?.trim()) || undefined;

/** Checks a provider's base URL; it may be invalid after substitution of an unset variable. */
export function checkAddress(id: string, provider: ProviderConfig): AddressProblem | undefined {
  const { options, api } = provider;
  if (options?.baseURL === undefined && (api === undefined || isApi(api))) return undefined;
  const path = ["provider", id, ...(options?.baseURL === undefined ? ["api"] : ["options", "baseURL"])];
  const address = getBaseUrl(provider);
  if (address === undefined)
    return {
      path,
      message: "is empty; set the API address (https://…/v1) or the variable that it names, or remove it",
    };
  if (/^https?:\/\/[^/?#]/i.test(address) && URL.canParse(address)) return undefined;
  return { path, message: "is not a valid address; it must begin with http:// or https:// and a host" };
}

export function checkAddresses({ provider = {} }: Config): AddressProblem[] {
  return Object.entries(provider).flatMap(([id, one]) => checkAddress(id, one) ?? []);
}
