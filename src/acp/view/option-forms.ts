import type {
  SessionConfigOption,
  SessionConfigSelectOption,
  SessionConfigSelectOptions,
} from "@agentclientprotocol/sdk/unstable";

/** Values of a boolean option in clients without boolean options. */
const booleanValues: readonly SessionConfigSelectOption[] = [
  { value: "on", name: "On" },
  { value: "off", name: "Off" },
];

/** Converts boolean options to selects with two values, for clients without boolean options. */
export function toSelects(options: readonly SessionConfigOption[]): SessionConfigOption[] {
  return options.map((option) => {
    if (option.type !== "boolean") return option;
    const { type: _, currentValue, ...common } = option;
    const value = currentValue ? "on" : "off";
    return { ...common, type: "select", currentValue: value, options: [...booleanValues] };
  });
}

/** Parses a boolean or its select value; undefined for other values. */
export function parseBoolean(value: unknown): boolean | undefined {
  if (typeof value === "boolean") return value;
  return value === "on" ? true : value === "off" ? false : undefined;
}

/** Groups models by provider if there are several providers. Values have the form `provider/model`. */
export function groupByProvider(choices: readonly SessionConfigSelectOption[]): SessionConfigSelectOptions {
  const groups = Map.groupBy(choices, ({ value }) => getProvider(value));
  const providers = [...groups.keys()].filter((name) => name !== noProvider);
  if (providers.length < 2) return [...choices];
  return [...groups].map(([group, options]) => ({ group, name: group, options }));
}

/** Group of the placeholder while no model is selected. */
const noProvider = "No model";

function getProvider(value: string): string {
  const slash = value.indexOf("/");
  return slash === -1 ? noProvider : value.slice(0, slash);
}
