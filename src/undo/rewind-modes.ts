/** What a rewind changes. */
export const rewindModes = ["files", "conversation", "both"] as const;
