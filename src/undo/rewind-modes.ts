/** The parts of a session that a rewind changes. */
export const rewindModes = ["files", "conversation", "both"] as const;
