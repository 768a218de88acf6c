import { z } from "./lazy-schemas-runtime.js";

// What the model library takes of the library of schemas, which loads when the first of it is called.
export { z };
export const safeParseAsync = (...given) => z.safeParseAsync(...given);
export const config = (...given) => z.config(...given);
export const toJSONSchema = (...given) => z.toJSONSchema(...given);
/** The language of messages, which the library of schemas brings along. */
export default () => ({});
