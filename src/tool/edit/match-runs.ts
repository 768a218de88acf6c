/**
 * Finds every position of the wanted sequence, overlapping ones too, in linear time (Knuth, Morris, Pratt).
 */
export function* findRuns(wanted: readonly string[], items: readonly string[]): Generator<number> {
  const borders = computeBorders(wanted);
  let matched = 0;
  for (let index = 0; index < items.length; index++) {
    while (matched > 0 && items[index] !== wanted[matched]) matched = borders[matched - 1] ?? 0;
    if (items[index] === wanted[matched]) matched++;
    if (matched < wanted.length) continue;
    yield index - wanted.length + 1;
    matched = borders[matched - 1] ?? 0;
  }
}

/** Computes for each prefix the length of its longest proper prefix that is also a suffix. */
function computeBorders(list: readonly string[]): number[] {
  const borders = list.length === 0 ? [] : [0];
  let border = 0;
  for (let index = 1; index < list.length; index++) {
    while (border > 0 && list[index] !== list[border]) border = borders[border - 1] ?? 0;
    if (list[index] === list[border]) border++;
    borders.push(border);
  }
  return borders;
}
