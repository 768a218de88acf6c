/** A measured figure with its floor, measured in the same run, and its target. */
export interface Row {
  name: string;
  own: number;
  unit: "ms" | "MB" | "KB" | "%" | "tokens";
  /** Measured in the same run; undefined if no plain program does the same. */
  floor?: number;
  /** Describes the floor. */
  beside?: string;
  /** Limit for the figure, its difference to the floor or its ratio to the floor. */
  target?: { most?: number; least?: number; ratio?: number; more?: number };
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** Returns the percentile of the values; NaN if there are none. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

export function printTable(rows: readonly Row[]): void {
  print([["", "ours", "floor", "ratio", "target", ""], ...rows.map(cellsOf)]);
}

/** Prints the rows of two builds side by side. */
export function printComparison(own: readonly Row[], other: readonly Row[]): void {
  const others = new Map(other.map((row) => [row.name, row.own]));
  const lines = own.map((row) => {
    const before = others.get(row.name) ?? Number.NaN;
    const ratio = before === 0 ? "" : `${(row.own / before).toFixed(2)} x`;
    const [name = "", now = "", floor = ""] = cellsOf(row);
    return [name, inUnit(before, row.unit), now, ratio, floor];
  });
  print([["", "other build", "ours", "ours / other", "floor"], ...lines]);
}

/** Merges rows of the same name from several runs into one row with their medians. */
export function medianRows(runs: readonly (readonly Row[])[]): Row[] {
  const byName = Map.groupBy(runs.flat(), ({ name }) => name);
  return [...byName.values()].flatMap((rows) => {
    const [first] = rows;
    if (first === undefined) return [];
    const floors = rows.flatMap(({ floor }) => floor ?? []);
    const floor = floors.length === 0 ? {} : { floor: median(floors) };
    return [{ ...first, ...floor, own: median(rows.map(({ own }) => own)) }];
  });
}

function print(lines: readonly (readonly string[])[]): void {
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  for (const line of lines)
    console.log(
      line
        .map((cell, column) => cell.padEnd(widths?.[column] ?? 0))
        .join("  ")
        .trimEnd(),
    );
}

function cellsOf(row: Row): string[] {
  const { name, own, unit, floor, beside } = row;
  const base =
    floor === undefined ? "" : `${inUnit(floor, unit)}${beside === undefined ? "" : ` (${beside})`}`;
  const ratio = floor === undefined || floor === 0 ? "" : `${(own / floor).toFixed(2)} x`;
  return [name, inUnit(own, unit), base, ratio, targetOf(row), isMet(row) ? "" : "missed"];
}

function inUnit(value: number, unit: Row["unit"]): string {
  const digits = unit === "ms" && value < 100 ? (value < 10 ? 2 : 1) : 0;
  return `${value.toFixed(digits)} ${unit}`;
}

function targetOf({ target, unit }: Row): string {
  if (target?.most !== undefined) return `at most ${target.most} ${unit}`;
  if (target?.least !== undefined) return `at least ${target.least} ${unit}`;
  if (target?.ratio !== undefined) return `at most ${target.ratio} x`;
  return target?.more === undefined ? "" : `at most ${target.more} ${unit} more`;
}

function isMet({ own, floor = 0, target = {} }: Row): boolean {
  const { most = Infinity, least = -Infinity, ratio = Infinity, more = Infinity } = target;
  const isWithinFloor = floor === 0 || (own / floor <= ratio && own - floor <= more);
  return own <= most && own >= least && isWithinFloor;
}
