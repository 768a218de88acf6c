import type { ReversibilityRecord } from "./forms.ts";

const gitValueFlags =
  "-C -c --git-dir --work-tree --namespace --exec-path --config-env -m --message -b -B -o --push-option -s --source --expire --message-id";

const readVerbs = "list|ls|view|status|diff|checks|show|search|browse|get|download|watch|clone|checkout";
const changeVerbs =
  "create|new|edit|update|comment|note|close|reopen|review|ready|lock|unlock|delete|upload|archive|unarchive|rename|fork|sync|transfer|pin|unpin|develop|set|add|remove|enable|disable|run|rerun|retry|cancel|trigger|approve|revoke|rebase|update-branch|publish|import|link|unlink|mark-template|item-add|item-edit|item-delete|field-create|field-delete";

/** Version control and code hosts. A key lists several names, separated by blanks. */
export const versionControl: Record<string, ReversibilityRecord> = {
  // Commits stay in the reflog; uncommitted changes, stashes, tags and deleted branches are lost.
  git: {
    valueFlags: gitValueFlags,
    irreversible: {
      "deletes branches or tags of a remote":
        "push -d|--delete !-n|--dry-run, push ** :* !-n|--dry-run, push --prune !-n|--dry-run",
      "overwrites the history of a remote":
        "push -f|--force|--force-with-lease|--force-if-includes|--mirror !-n|--dry-run, push ** +* !-n|--dry-run",
      "sends commits to a remote":
        "push !-n|--dry-run, subtree push, lfs push !--dry-run, svn dcommit !-n|--dry-run, p4 submit, annex sync|push|copy|move, review !-n|--dry-run",
      "sends a message": "send-email !--dry-run, imap-send",
      "discards changes that are not committed":
        "reset --hard|--merge, checkout -f|--force, checkout ** .|./|:/|:/*, switch -f|--force|--discard-changes, restore ** .|./|:/|:/* !-S|--staged, restore ** .|./|:/|:/* -W|--worktree, read-tree --reset, checkout-index -f|--force, submodule deinit -f|--force, submodule update -f|--force",
      "deletes files that git ignores": "clean -x|-X !-n|--dry-run",
      "deletes a branch that may not be merged": "branch -D, branch -d|--delete -f|--force",
      "deletes a tag": "tag -d|--delete",
      "replaces a tag": "tag -f|--force",
      "deletes stashed changes": "stash drop|clear",
      "deletes a reference":
        "update-ref -d|--stdin, symbolic-ref -d|--delete, replace -d, notes remove|prune",
      "rewrites the history of all commits":
        "filter-branch, filter-repo, fast-import --force, replace --convert-graft-file",
      "deletes commits that no branch contains":
        "gc --prune, prune !-n|--dry-run, reflog expire|delete !-n|--dry-run",
      "deletes a worktree and its changes": "worktree remove -f|--force",
      "removes a remote or changes its address": "remote remove|rm|set-url",
    },
    undoable:
      "add, am, annotate, apply, archive, bisect, blame, branch, bundle, cat-file, check-attr, check-ignore, check-ref-format, checkout, cherry, cherry-pick, clean, clone, commit, commit-tree, config, count-objects, describe, diff, diff-files, diff-index, diff-tree, difftool, fetch, fmt-merge-msg, for-each-ref, format-patch, fsck, gc, grep, hash-object, help, init, log, ls-files, ls-remote, ls-tree, merge, merge-base, merge-file, merge-tree, mv, name-rev, notes, pack-refs, prune, pull, push, range-diff, rebase, reflog, remote, request-pull, reset, restore, rev-list, rev-parse, revert, rm, shortlog, show, show-branch, show-ref, sparse-checkout, stage, stash, status, submodule, switch, symbolic-ref, tag, update-index, var, verify-commit, verify-tag, version, whatchanged, worktree, write-tree, $",
  },
  // Only `gh api` sends other requests than the subcommands say.
  gh: {
    valueFlags:
      "-R --repo -H --header -q --jq -t --template --hostname -b --body -F --body-file --title --method -X -f --raw-field --field --input --cache -p --preview -l --label -a --assignee -B --base --head -r --reviewer -m --milestone -e --env -o --org",
    irreversible: {
      "merges a pull request": "pr merge",
      "deletes a repository": "repo delete",
      "publishes a release": "release create",
      "opens a pull request": "pr create|new",
      "opens an issue": "issue create|new",
      "posts a comment": "pr|issue comment",
      "changes something on GitHub": `pr|issue|release|repo|gist|label|secret|variable|workflow|run|project|cache|ruleset|codespace|ssh-key|gpg-key|milestone|discussion ${changeVerbs}, repo deploy-key|autolink add|create|delete, codespace stop|rebuild|cp`,
      "changes who is signed in": "auth login|logout|refresh|switch",
      "installs programs outside the workspace": "extension|ext install|upgrade|remove",
    },
    undoable: `* ${readVerbs}, auth status|token, status, browse, search, alias list, config get|list, extension|ext list|search|browse, completion, --help|--version`,
  },
  glab: {
    valueFlags:
      "-R --repo -F -f --field --raw-field -X --method -H --header -d --description -t --title -m --message -l --label -a --assignee",
    irreversible: {
      "merges a merge request": "mr merge|accept",
      "deletes a repository": "repo|project delete",
      "publishes a release": "release create",
      "opens a merge request": "mr create|new|for",
      "opens an issue": "issue create|new",
      "posts a comment": "mr|issue note|comment",
      "changes something on GitLab": `mr|issue|release|repo|project|ci|pipeline|pipe|label|variable|snippet|incident|milestone|schedule|ssh-key|deploy-key|cluster|token|iteration ${changeVerbs}`,
      "changes who is signed in": "auth login|logout",
    },
    undoable: `* ${readVerbs}|trace|lint, auth status, --help|--version`,
  },
  hub: {
    irreversible: {
      "sends commits to a remote": "push",
      "changes something on GitHub":
        "pull-request, create, fork, delete, release create|edit|delete, issue create|update, merge, sync",
    },
  },
  hg: {
    valueFlags: "-R --repository --cwd --config -r --rev -m --message -b --branch",
    dryRunFlags: "-n --dry-run",
    irreversible: {
      "sends commits to a remote": "push",
      "sends a message": "email",
      "discards changes that are not committed": "update|up|checkout|co|goto -C|--clean, revert -a|--all",
      "deletes files that are not tracked": "purge|clean",
      "deletes commits": "strip, prune",
    },
    undoable:
      "add, addremove, annotate, blame, branch, branches, cat, clone, commit, ci, diff, files, grep, heads, id, identify, incoming, in, init, locate, log, manifest, merge, outgoing, out, parents, paths, pull, resolve, revert, root, shelve, show, status, st, summary, tags, tip, unshelve, update, up, checkout, version",
  },
  svn: {
    valueFlags: "-m --message -r --revision -F --file --username --password --depth",
    irreversible: {
      "sends commits to a remote":
        "commit|ci, delete|del|remove|rm *://*, copy|cp ** *://*, move|mv|rename *://*, mkdir *://*, import, propset|propdel|propedit --revprop",
      "discards changes that are not committed":
        "revert -R|--recursive, cleanup --remove-unversioned|--remove-ignored",
    },
    undoable:
      "add, annotate, blame, cat, checkout, co, cleanup, diff, di, export, info, list, ls, log, merge, resolve, revert, status, stat, st, switch, update, up",
  },
  // The operation log of jj holds every state of the repository.
  jj: {
    valueFlags: "-R --repository -m --message -r --revision --config --at-operation",
    dryRunFlags: "--dry-run",
    irreversible: {
      "sends commits to a remote": "git push",
      "deletes the log with which it undoes": "op|operation abandon, util gc",
    },
    otherwise: "undoable",
  },
  p4: {
    irreversible: {
      "sends commits to a remote": "submit",
      "discards changes that are not committed": "revert, clean",
      "deletes files of the server": "obliterate",
    },
  },
  "git-review repo-upload": {
    dryRunFlags: "-n --dry-run",
    otherwise: { irreversible: "sends commits to a remote" },
  },
  repo: { irreversible: { "sends commits to a remote": "upload" } },
  "arc gt spr ghstack": {
    irreversible: { "sends commits to a remote": "diff|land|submit|ss|push|publish|merge" },
  },
};
