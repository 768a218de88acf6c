const { dirname, join } = require("node:path");

// The native part of fs-native-extensions from where its package has it; looking for it in all places that it could be
// in takes as long as the rest of what a first prompt needs of the disk.
const folder = dirname(require.resolve("fs-native-extensions/package.json"));
const machine = `${process.platform}-${process.arch}`;
module.exports = require(join(folder, "prebuilds", machine, "fs-native-extensions.node"));
