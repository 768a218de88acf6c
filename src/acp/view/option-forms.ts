import type {
  SessionConfigOption,
  SessionConfigSelectOption,
  SessionConfigSelectOptions,
} from "@agentclientprotocol/sdk/unstable";

/** How a switch is chosen in a client that has none. */
const booleanValues: readonly SessionConfigSelectOption[] = [
  { value: "on", name: "On" },
  { value: "off", name: "Off" },
];

/** Switches as choices between two values, for clients without switches. */
export function toSelects(options: readonly SessionConfigOption[]): SessionConfigOption[] {
  return options.map((option) => {
    if (option.type !== "boolean") return option;
    const { type: _, currentValue, ...common } = option;
    const value = currentValue ? "on" : "off";
    return { ...common, type: "select", currentValue: value, options: [...booleanValues] };
  });
}

/** Which way a switch is to go, said in either form. */
export function parseBoolean(value: unknown): boolean | undefined {
  if (typeof value === "boolean") return value;
  return value === "on" ? true : value === "off" ? false : undefined;
}

/** Models under the names of their providers, where there are several; `provider/model` is what a value looks like. */
export function groupByProvider(choices: readonly SessionConfigSelectOption[]): SessionConfigSelectOptions {
  const groups = Map.groupBy(choices, ({ value }) => getProvider(value));
  const providers = [...groups.keys()].filter((name) => name !== noProvider);
  if (providers.length < 2) return [...choices];
  return [...groups].map(([group, options]) => ({ group, name: group, options }));
}

/** Above what stands there while no model is chosen. */
const noProvider = "No model";

function getProvider(value: string): string {
  const slash = value.indexOf("/");
  return slash === -1 ? noProvider : value.slice(0, slash);
}
