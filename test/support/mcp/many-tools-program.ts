// An MCP server with as many tools, and as long descriptions, as real servers. The first argument names its
// list. Each call returns the tool's name and arguments.
import { createInterface } from "node:readline";

interface Request {
  id?: number;
  method?: string;
  params?: { name?: string; arguments?: object };
}

/** Parameters by name; one that ends in "!" is required. */
type Parameters = Readonly<Record<string, object>>;
type ToolRow = readonly [name: string, description: string, parameters: Parameters];

const text = (description: string) => ({ type: "string", description });
const number = (description: string) => ({ type: "number", description });
const flag = (description: string) => ({ type: "boolean", description });
const choice = (description: string, ...values: string[]) => ({ type: "string", enum: values, description });
const list = (description: string, items: object = { type: "string" }) => ({
  type: "array",
  items,
  description,
});

function toSchema(parameters: Parameters): object {
  const entries = Object.entries(parameters);
  return {
    type: "object",
    properties: Object.fromEntries(entries.map(([name, schema]) => [name.replace("!", ""), schema])),
    required: entries.flatMap(([name]) => (name.endsWith("!") ? [name.slice(0, -1)] : [])),
    additionalProperties: false,
    $schema: "http://json-schema.org/draft-07/schema#",
  };
}

const repository = {
  "owner!": text("Owner of the repository: a user name or an organization"),
  "repo!": text("Name of the repository, without the owner"),
};
const pages = {
  page: number("Page of the results, from 1, to be raised until no more results come"),
  perPage: number("Results on each page, between 1 and 100; 30 where it is left out"),
};
const branch = text("Branch to work on; the default branch of the repository where it is left out");
const pull = { ...repository, "pull_number!": number("Number of the pull request in this repository") };
const issue = { ...repository, "issue_number!": number("Number of the issue in this repository") };

const github: readonly ToolRow[] = [
  [
    "create_or_update_file",
    "Create a file in a repository or replace its content with a commit on a branch. An update needs the SHA of the blob that it replaces, so that no other change is lost.",
    {
      ...repository,
      "path!": text("Path of the file in the repository"),
      "content!": text("The whole content of the file, as text"),
      "message!": text("Message of the commit"),
      "branch!": branch,
      sha: text("SHA of the blob that is replaced; required for files that exist"),
    },
  ],
  [
    "push_files",
    "Push several files to a branch in one commit, which is faster than a commit for each of them.",
    {
      ...repository,
      "branch!": branch,
      "files!": list("The files to push, each with its path and its whole content", {
        type: "object",
        properties: { path: text("Path in the repository"), content: text("Whole content") },
        required: ["path", "content"],
        additionalProperties: false,
      }),
      "message!": text("Message of the commit"),
    },
  ],
  [
    "search_repositories",
    "Search for repositories by name, topic, language or description, in the search syntax of the site.",
    { "query!": text("Query in search syntax, such as 'language:rust stars:>100'"), ...pages },
  ],
  [
    "create_repository",
    "Create a repository in your account or in an organization that you belong to.",
    {
      "name!": text("Name of the repository"),
      description: text("A short description of the repository"),
      private: flag("Whether only you and people that you invite can see it"),
      autoInit: flag("Whether it begins with a README"),
      organization: text("Organization to create it in; your own account where it is left out"),
    },
  ],
  [
    "get_file_contents",
    "Get the content of a file or the entries of a directory of a repository, at a branch, a tag or a commit.",
    { ...repository, "path!": text("Path of the file or directory"), ref: text("Branch, tag or commit SHA") },
  ],
  [
    "create_issue",
    "Create an issue in a repository, with labels, people who are assigned to it, and a milestone.",
    {
      ...repository,
      "title!": text("Title of the issue"),
      body: text("Text of the issue, in Markdown"),
      assignees: list("Login names of the people who are assigned"),
      labels: list("Names of labels that exist in the repository"),
      milestone: number("Number of a milestone of the repository"),
    },
  ],
  [
    "update_issue",
    "Change the title, the text, the state, the labels or the people of an issue. What is left out stays as it is.",
    {
      ...issue,
      title: text("The new title"),
      body: text("The new text, in Markdown"),
      state: choice("The new state", "open", "closed"),
      state_reason: choice("Why it has this state", "completed", "not_planned", "reopened", "duplicate"),
      labels: list("All labels that it has from now on"),
      assignees: list("All people who are assigned from now on"),
    },
  ],
  [
    "list_issues",
    "List the issues of a repository with filters and an order. Pull requests are issues too and are listed as well.",
    {
      ...repository,
      state: choice("Which issues are listed", "open", "closed", "all"),
      labels: list("Labels that each listed issue has"),
      sort: choice("What they are ordered by", "created", "updated", "comments"),
      direction: choice("The direction of the order", "asc", "desc"),
      since: text("Only issues that were updated after this time (ISO 8601)"),
      ...pages,
    },
  ],
  ["get_issue", "Get one issue of a repository with its text, labels, people and state.", issue],
  [
    "add_issue_comment",
    "Add a comment to an issue or a pull request of a repository, in Markdown.",
    { ...issue, "body!": text("Text of the comment, in Markdown") },
  ],
  [
    "search_issues",
    "Search for issues and pull requests in all repositories that you can read, in the search syntax of the site.",
    {
      "q!": text("Query in search syntax, such as 'repo:owner/name is:open label:bug'"),
      sort: choice("What they are ordered by", "comments", "reactions", "created", "updated", "interactions"),
      order: choice("The direction of the order", "asc", "desc"),
      ...pages,
    },
  ],
  [
    "search_code",
    "Search for code in all repositories that you can read. Only the default branch of each is searched.",
    { "q!": text("Query in search syntax, such as 'content:foo language:go org:name'"), ...pages },
  ],
  [
    "create_pull_request",
    "Open a pull request from one branch to another of a repository, or from a fork.",
    {
      ...repository,
      "title!": text("Title of the pull request"),
      body: text("Text of the pull request, in Markdown"),
      "head!": text("Branch with the changes; 'user:branch' for a branch of a fork"),
      "base!": text("Branch that the changes are merged into"),
      draft: flag("Whether it is opened as a draft"),
      maintainer_can_modify: flag("Whether maintainers may push to the branch"),
    },
  ],
  [
    "list_pull_requests",
    "List the pull requests of a repository with filters and an order.",
    {
      ...repository,
      state: choice("Which pull requests are listed", "open", "closed", "all"),
      head: text("Only from this branch, as 'user:branch'"),
      base: text("Only into this branch"),
      sort: choice("What they are ordered by", "created", "updated", "popularity", "long-running"),
      direction: choice("The direction of the order", "asc", "desc"),
      ...pages,
    },
  ],
  [
    "get_pull_request",
    "Get one pull request with its text, branches, state and whether it can be merged.",
    pull,
  ],
  [
    "get_pull_request_files",
    "List the files that a pull request changes, each with its patch.",
    { ...pull, ...pages },
  ],
  [
    "get_pull_request_status",
    "Get the combined status of all checks of a pull request's newest commit.",
    pull,
  ],
  [
    "create_pull_request_review",
    "Write a review of a pull request, with comments on single lines, and approve it or ask for changes.",
    {
      ...pull,
      "body!": text("Text of the review"),
      "event!": choice("The verdict", "APPROVE", "REQUEST_CHANGES", "COMMENT"),
      commit_id: text("SHA of the reviewed commit; the newest where it is left out"),
      comments: list("Comments on lines, each with a path, and a position in the patch or a line", {
        type: "object",
        properties: {
          path: text("Path of the file that is commented on"),
          position: number("Position in the patch, counted from its first line"),
          line: number("Line in the file after the change"),
          body: text("Text of the comment"),
        },
        required: ["path", "body"],
      }),
    },
  ],
  [
    "merge_pull_request",
    "Merge a pull request by a merge commit, by squashing its commits or by rebasing them.",
    {
      ...pull,
      commit_title: text("Title of the merge commit"),
      commit_message: text("Additional text of the merge commit"),
      merge_method: choice("How it is merged", "merge", "squash", "rebase"),
    },
  ],
  [
    "create_branch",
    "Create a branch of a repository from another one.",
    { ...repository, "branch!": text("Name of the new branch"), from_branch: branch },
  ],
  ["list_commits", "List the commits of a branch, newest first.", { ...repository, sha: branch, ...pages }],
  [
    "fork_repository",
    "Fork a repository to your account or to an organization.",
    {
      ...repository,
      organization: text("Organization to fork it to; your own account where it is left out"),
    },
  ],
];

const path = { "path!": text("Absolute path in one of the allowed directories") };

const files: readonly ToolRow[] = [
  [
    "read_text_file",
    "Read a whole file as text, whatever its extension, or only its first or last lines. Works in allowed directories only.",
    {
      ...path,
      head: number("Read only this many first lines"),
      tail: number("Read only this many last lines"),
    },
  ],
  ["read_media_file", "Read an image or an audio file. Answers with its data as base64 and its type.", path],
  [
    "read_multiple_files",
    "Read several files at once, which is faster than one by one. A file that cannot be read does not stop the others.",
    { "paths!": list("Absolute paths of the files in allowed directories") },
  ],
  [
    "write_file",
    "Create a file or replace its whole content without a warning. Works in allowed directories only.",
    { ...path, "content!": text("The whole content") },
  ],
  [
    "edit_file",
    "Change lines of a text file: each edit replaces an exact sequence of lines. Answers with a diff of the changes.",
    {
      ...path,
      "edits!": list("The edits, which are made in this order", {
        type: "object",
        properties: {
          oldText: text("Text to look for; must match exactly"),
          newText: text("Text to put in its place"),
        },
        required: ["oldText", "newText"],
        additionalProperties: false,
      }),
      dryRun: flag("Whether to answer with the diff without changing the file"),
    },
  ],
  ["create_directory", "Create a directory with its parents, or make sure that it exists.", path],
  ["list_directory", "List the files and directories in a directory, each marked with what it is.", path],
  [
    "list_directory_with_sizes",
    "List the files and directories in a directory with their sizes and a sum.",
    { ...path, sortBy: choice("What the entries are ordered by", "name", "size") },
  ],
  [
    "move_file",
    "Move or rename a file or a directory. Fails if the destination exists. Both must be in allowed directories.",
    {
      "source!": text("Absolute path of what is moved"),
      "destination!": text("Absolute path to move it to"),
    },
  ],
  [
    "search_files",
    "Search a directory and all directories in it for files whose names match a pattern. Answers with full paths.",
    {
      ...path,
      "pattern!": text("Glob pattern of the names, such as '**/*.ts'"),
      excludePatterns: list("Glob patterns of files and directories to leave out"),
    },
  ],
  ["get_file_info", "Get the size, the times, the type and the permissions of a file or a directory.", path],
];

const element = {
  "element!": text("Description of the element in plain words, used to get permission to interact with it"),
  "ref!": text("Exact reference of the element from the snapshot of the page"),
};

const browser: readonly ToolRow[] = [
  ["browser_navigate", "Navigate to a URL in the current tab.", { "url!": text("The URL to navigate to") }],
  ["browser_navigate_back", "Go back to the page before in the history of the current tab.", {}],
  [
    "browser_snapshot",
    "Capture the accessibility tree of the current page; better than a screenshot to decide what to do next.",
    { filename: text("File to save the snapshot to, instead of the answer") },
  ],
  [
    "browser_click",
    "Click on an element of the page, once or twice, with a button of the mouse and keys.",
    {
      ...element,
      doubleClick: flag("Whether to click twice"),
      button: choice("Button of the mouse; left where it is left out", "left", "right", "middle"),
      modifiers: list("Keys that are held meanwhile", choice("A key", "Alt", "Control", "Meta", "Shift")),
    },
  ],
  [
    "browser_type",
    "Type text into an editable element of the page, and submit it if wanted.",
    {
      ...element,
      "text!": text("The text to type"),
      submit: flag("Whether to press Enter afterwards"),
      slowly: flag("Whether to type one character at a time, so that key handlers of the page run"),
    },
  ],
  [
    "browser_fill_form",
    "Fill in several fields of a form at once.",
    {
      "fields!": list("The fields to fill in", {
        type: "object",
        properties: {
          name: text("Name of the field in plain words"),
          type: choice("Type of the field", "textbox", "checkbox", "radio", "combobox", "slider"),
          ref: text("Exact reference of the field from the snapshot of the page"),
          value: text("The value; 'true' or 'false' for a checkbox"),
        },
        required: ["name", "type", "ref", "value"],
        additionalProperties: false,
      }),
    },
  ],
  [
    "browser_select_option",
    "Select options in a dropdown of the page.",
    { ...element, "values!": list("Values of the options to select, one or more") },
  ],
  ["browser_hover", "Move the mouse over an element of the page.", element],
  [
    "browser_drag",
    "Drag an element of the page and drop it on another one.",
    {
      "startElement!": text("Description of the dragged element in plain words"),
      "startRef!": text("Exact reference of the dragged element"),
      "endElement!": text("Description of the element to drop it on in plain words"),
      "endRef!": text("Exact reference of the element to drop it on"),
    },
  ],
  [
    "browser_press_key",
    "Press a key on the keyboard.",
    { "key!": text("Name of the key, such as 'ArrowLeft', or a character to generate, such as 'a'") },
  ],
  [
    "browser_take_screenshot",
    "Take a screenshot of the current page. You cannot act on a screenshot; use the snapshot for that.",
    {
      type: choice("Format of the image", "png", "jpeg"),
      filename: text("File to save the image to; a name with the time where it is left out"),
      element: text("Description of the element to show, if not the whole page"),
      ref: text("Exact reference of that element"),
      fullPage: flag("Whether to show the whole page instead of the visible part"),
    },
  ],
  [
    "browser_evaluate",
    "Evaluate a JavaScript function on the page or on an element of it.",
    {
      "function!": text("The function: () => { ... }, or (element) => { ... } with an element"),
      element: text("Description of the element in plain words"),
      ref: text("Exact reference of the element"),
    },
  ],
  [
    "browser_console_messages",
    "List the messages of the console of the page.",
    { level: choice("The least severe messages to list", "error", "warning", "info", "debug") },
  ],
  [
    "browser_network_requests",
    "List the network requests since the page was loaded.",
    { includeStatic: flag("Whether to list successful requests of images, fonts and scripts too") },
  ],
  [
    "browser_wait_for",
    "Wait for a text to appear or to disappear, or for some time to pass.",
    {
      time: number("Seconds to wait"),
      text: text("Text to wait for"),
      textGone: text("Text whose end to wait for"),
    },
  ],
];

const schemaName = text("Name of the schema; public where it is left out");

const postgres: readonly ToolRow[] = [
  [
    "query",
    "Run a read-only SQL query in a transaction that is rolled back, and answer with its rows as JSON.",
    {
      "sql!": text("The query, with $1, $2 for parameters"),
      params: list("Values of the parameters, in order"),
      limit: number("Most rows in the answer; 100 where it is left out"),
    },
  ],
  ["list_tables", "List the tables and views of a schema with their sizes.", { schema: schemaName }],
  [
    "describe_table",
    "Describe a table: its columns with types and defaults, its indexes, its constraints and foreign keys.",
    { "table!": text("Name of the table"), schema: schemaName },
  ],
  [
    "explain_query",
    "Show the plan of a query, with real times if it is run, and suggest indexes for it.",
    { "sql!": text("The query"), analyze: flag("Whether to run the query to measure real times") },
  ],
];

const channel = { "channel_id!": text("Id of the channel, such as C0123456789") };

const slack: readonly ToolRow[] = [
  [
    "list_channels",
    "List the public channels of the workspace, or those that are set in advance, page by page.",
    {
      limit: number("Most channels in the answer, 100 by default and 200 at most"),
      cursor: text("Next page"),
    },
  ],
  ["post_message", "Post a message to a channel.", { ...channel, "text!": text("Text of the message") }],
  [
    "reply_to_thread",
    "Reply to a thread of messages in a channel.",
    {
      ...channel,
      "thread_ts!": text("Time of the thread's first message as '1234567890.123456'"),
      "text!": text("Text of the reply"),
    },
  ],
  [
    "add_reaction",
    "Add an emoji as a reaction to a message.",
    {
      ...channel,
      "timestamp!": text("Time of the message"),
      "reaction!": text("Name of the emoji, without colons"),
    },
  ],
  [
    "get_channel_history",
    "Get the newest messages of a channel.",
    { ...channel, limit: number("Number of messages, 10 where it is left out") },
  ],
  [
    "get_user_profile",
    "Get the profile of a user: name, title, status, time zone and contact details.",
    { "user_id!": text("Id of the user") },
  ],
];

const lists: Readonly<Record<string, readonly ToolRow[]>> = { github, files, browser, postgres, slack };
const rows = lists[process.argv[2] ?? ""] ?? [];
const tools = rows.map(([name, description, parameters]) => ({
  name,
  description,
  inputSchema: toSchema(parameters),
}));

function answer({ method, params }: Request): object {
  switch (method) {
    case "initialize":
      return {
        protocolVersion: "2025-06-18",
        capabilities: { tools: {} },
        serverInfo: { name: "many", version: "1.0.0" },
      };
    case "tools/list":
      return { tools };
    default:
      return { content: [{ type: "text", text: `${params?.name} ${JSON.stringify(params?.arguments)}` }] };
  }
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const request: Request = JSON.parse(line);
  if (request.id === undefined) return;
  const result = answer(request);
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id: request.id, result })}\n`);
});
