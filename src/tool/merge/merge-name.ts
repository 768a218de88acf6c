/** Name of the tool in stored calls. */
export const mergeName = "merge";
