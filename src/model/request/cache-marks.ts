/**
 * Returns which messages get a cache mark: the system text, the end of the previous request (the message before the newest
 * answer) and the end of this one. A provider looks back only 20 blocks from a mark for an earlier one, so the end of the
 * previous request is marked again: many parallel calls add more.
 */
export function cacheMarkIndexes(
  roles: readonly unknown[],
  isMarkable: (index: number) => boolean = () => true,
): ReadonlySet<number> {
  const indexes = [...roles.keys()].filter(isMarkable);
  const newestAnswer = roles.lastIndexOf("assistant");
  const system = indexes.find((index) => roles[index] === "system");
  const previousEnd = indexes.findLast((index) => index < newestAnswer);
  return new Set([system, previousEnd, indexes.at(-1)].filter((index) => index !== undefined));
}
