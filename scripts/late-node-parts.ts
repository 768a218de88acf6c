import type { Plugin } from "rolldown";

/** Parts of Node that take milliseconds to load, which not every request needs. */
const lateParts = ["node:child_process", "node:crypto", "node:fs/promises", "node:v8"];

const late =
  "const lateNode=name=>{let part;return new Proxy({},{get:(_,key)=>(part??=require(name))[key]})};";

/** The files that every start loads; who loads another one uses what it names. */
const startFiles = ["main", "start", "shared", "server"];

/** Has a start load some parts of Node when something of them is first used, not with the file that names them. */
export const lateNodeParts: Plugin = {
  name: "late-node-parts",
  generateBundle(_, bundle) {
    for (const part of Object.values(bundle)) {
      if (part.type !== "chunk" || !startFiles.includes(part.name)) continue;
      const code = lateParts.reduce(
        (code, name) => code.replaceAll(`require("${name}")`, `lateNode("${name}")`),
        part.code,
      );
      if (code !== part.code) part.code = late + code;
    }
  },
};
