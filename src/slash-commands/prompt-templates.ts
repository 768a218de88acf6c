import init from "../../prompts/commands/init.md";
import review from "../../prompts/commands/review.md";

/** Templates of the built-in commands that are prompts. */
export const promptTemplates = { init, review } as const;
