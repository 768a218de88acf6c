const { join } = require("node:path");

// The native part of fs-native-extensions: the build copies it beside the bundle (native-lock.ts).
module.exports = require(join(__dirname, `fs-native-extensions-${process.platform}-${process.arch}.node`));
