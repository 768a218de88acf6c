/** Rounds a cost in US dollars for clients: sums of floating-point numbers have digits that mean nothing. */
export const roundCost = (dollars: number): number => Math.round(dollars * 1e6) / 1e6;
