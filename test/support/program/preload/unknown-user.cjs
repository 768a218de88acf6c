// Loaded into the program before it: the system does not know the user, as in a container that runs as any number.
const os = require("node:os");

const fail = (call) => () => {
  throw Object.assign(new Error(`A system error occurred: ${call} returned ENOENT`), {
    code: "ERR_SYSTEM_ERROR",
  });
};
os.userInfo = fail("uv_os_get_passwd");
const { homedir } = os;
os.homedir = () => (process.env.HOME ? homedir() : fail("uv_os_homedir")());
