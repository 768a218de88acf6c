/** Something is wrong with how a command was called. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

export const usage = `Fairlead: a coding agent that lives behind your editor.

Usage:
  fairlead acp                 serve an editor on stdin and stdout (editors start this)
  fairlead run "what to do"    do one thing from the shell and print the answer
  fairlead demo                see a whole turn with a scripted model: no key, no network
  fairlead doctor              what is configured, what works, what to do
  fairlead models              the models that can be used now
  fairlead models --discover   ask the providers, or the one named behind it, for theirs first
  fairlead trust               the folders whose own configuration you trust
  fairlead trust add DIR       trust what the configuration in DIR is now
  fairlead trust revoke DIR    trust it no more
  fairlead mcp list            connect to the MCP servers and say how they are (--json)
  fairlead mcp auth NAME       let Fairlead use a remote MCP server, in your browser
  fairlead mcp logout NAME     forget what that server gave (--all: of every server)
  fairlead permissions check   what the rules say to command lines, one a line; runs nothing
  fairlead --version           the version
  fairlead --help              this text

fairlead run takes:
  --cwd DIR                    work there instead of here
  --mode NAME                  build (default), plan, or an agent of yours
  --model PROVIDER/MODEL       instead of the configured one
  --permission ask|allow|deny  what happens where a rule asks (ask on a terminal, else deny)
  --trust                      trust the folder's own configuration as it is now
  --session ID                 go on in that session
  --continue                   go on in the newest session of the folder
  --format text|json           json prints one ACP update a line

fairlead permissions check takes a command line, or reads them from stdin, and:
  --agent NAME                 under this agent's rules instead of the default one's
  --cwd DIR                    as if run there instead of here
  --json                       one object a line: {command, action, parts}

Exit codes: 0 done (a check also where the answer is deny), 1 failed, 2 wrong usage, 3 stopped at a limit, 130 cancelled.
`;
