import type { ReversibilityRecord } from "./forms.ts";

const publishes = "publishes a package";
const installsGlobally = "installs programs for the whole machine";
const installsOutside = "installs programs outside the workspace";
const registryChange = "changes a package on its registry";

/** Package managers, build tools and registries. A key lists several names, separated by blanks. */
export const packages: Record<string, ReversibilityRecord> = {
  "npm pnpm cnpm": {
    valueFlags:
      "-w --workspace --filter -F --prefix -C --dir --registry --tag --otp --access --cache --userconfig --loglevel",
    dryRunFlags: "--dry-run",
    irreversible: {
      [publishes]: "publish, stage publish",
      [registryChange]:
        "unpublish|deprecate|undeprecate|star|unstar, dist-tag|dist-tags add|set|rm, owner|author add|rm, access set|grant|revoke|public|restricted|edit|2fa-required|2fa-not-required, team create|destroy|add|rm, org set|rm, hook add|update|rm, token create|revoke|delete, profile set|enable-2fa|disable-2fa, trust",
      "changes who is signed in": "login|logout|adduser|add-user",
      [installsGlobally]:
        "install|i|in|ins|inst|add|update|up|upgrade|uninstall|un|rm|remove|r|ci|link|ln -g|--global|--location, env use|add|remove",
    },
    undoable:
      "ls|list|ll|la, view|info|show|v, outdated, audit $, why|explain, root, prefix, bin, pack, search|s|find, whoami, ping, docs|home, repo, bugs, config get|list|ls, help, version, init, pkg, fund, query, doctor, cache ls|verify, store path|status, --version|-v|--help",
  },
  yarn: {
    valueFlags: "--cwd --registry --tag --otp --access -T",
    dryRunFlags: "-n --dry-run",
    irreversible: {
      [publishes]:
        "publish, npm publish, workspaces foreach ** publish, workspace * publish, workspace * npm publish",
      [registryChange]:
        "npm tag add|remove, tag add|set|rm|remove, owner add|remove, team create|destroy|add|remove, access grant|revoke",
      "changes who is signed in": "login|logout, npm login|logout",
      [installsGlobally]: "global add|remove|upgrade",
    },
    undoable:
      "list, why, info, outdated, audit, npm info|whoami|audit, config get|list, pack, version, init, --version|--help",
  },
  bun: {
    valueFlags: "--cwd --registry --tag --otp --access --filter",
    dryRunFlags: "--dry-run",
    irreversible: {
      [publishes]: "publish",
      [installsGlobally]: "install|i|add|a|update|remove|rm|link -g|--global, upgrade",
    },
    undoable: "pm ls|hash|bin|cache, outdated, info, why, init, --version|--help",
  },
  deno: {
    dryRunFlags: "--dry-run",
    irreversible: {
      [publishes]: "publish",
      "deploys a program": "deploy",
      [installsOutside]: "install -g|--global, uninstall -g|--global, upgrade",
    },
    undoable: "check, fmt, lint, doc, info, types, --version|--help",
  },
  "jsr vsce ovsx web-ext chrome-webstore-upload np release-it semantic-release clean-publish": {
    dryRunFlags: "-d --dry-run --no-publish --no-ci",
    irreversible: {
      [publishes]:
        "publish, submit, sign, upload, $, major|minor|patch|premajor|preminor|prepatch|prerelease|*.*.*",
      [registryChange]: "unpublish",
    },
    undoable: "package, ls, show, lint, build, --version|--help",
  },
  lerna: {
    dryRunFlags: "--dry-run",
    irreversible: {
      [publishes]: "publish",
      "sends commits to a remote": "version !--no-push",
    },
    undoable: "version, list, ls, changed, diff, add, create, --version|--help",
  },
  "changeset changesets nx rush auto": {
    dryRunFlags: "-d --dry-run",
    irreversible: { [publishes]: "publish, release !--skip-publish, release publish, shipit, lerna publish" },
    undoable: "list, ls, changed, diff, add, status, version, graph, show, --version|--help",
  },
  cargo: {
    valueFlags:
      "-p --package --manifest-path --config -Z --color --target-dir --registry --index --token --vers --version --root --git --branch --tag --rev --path -F --features -j --jobs",
    dryRunFlags: "-n --dry-run --list",
    irreversible: {
      [publishes]: "publish, release -x|--execute",
      [registryChange]: "yank, owner -a|-r|--add|--remove",
      "changes who is signed in": "login|logout",
      [installsOutside]:
        "install !--root, binstall !--root, uninstall !--root, install-update, install-upgrade",
    },
    undoable:
      "metadata, tree, search, info, locate-project, pkgid, fmt, fetch, update, add, remove, rm, init, new, vendor, package, version, help, --version|-V|--help",
  },
  rustup: {
    irreversible: {
      [installsOutside]:
        "update|upgrade, install|uninstall, toolchain install|uninstall|link, target add|remove, component add|remove, self update|uninstall, default *",
    },
    undoable:
      "show, which, doc, check, default, toolchain list, target list, component list, override, run, --version|--help",
  },
  "rustup-init volta nvm fnm n nodenv rbenv pyenv jenv goenv asdf mise sdk tfenv tfswitch corepack proto": {
    irreversible: {
      [installsOutside]:
        "install|i|uninstall|remove|rm|global|use -g|--global, install|i|uninstall|remove|rm|global|upgrade|update|prepare|self-update, plugin add|remove|update",
    },
    undoable:
      "ls, list, ls-remote, current, which, where, use, local, version, versions, env, exec, --version|--help",
  },
  go: {
    hasSingleDashNames: true,
    valueFlags: "-C -o -mod -tags -run -count -timeout",
    irreversible: {
      [installsOutside]: "install *@*, env -w|-u",
      "deletes the module cache": "clean -modcache",
    },
    undoable: "build, vet, fmt, list, env, version, doc, mod, get, work, clean, help",
  },
  "pip pip3": {
    valueFlags:
      "-r --requirement -c --constraint -e --editable -i --index-url --extra-index-url -t --target --prefix --root --python",
    dryRunFlags: "--dry-run",
    irreversible: { [installsGlobally]: "install|uninstall --user|--break-system-packages" },
    undoable:
      "list, freeze, show, check, search, index, download, wheel, config list|get, cache list|info|dir, debug, inspect, hash, --version|-V|--help",
  },
  pipx: {
    irreversible: {
      [installsOutside]:
        "install|inject|uninject|upgrade|upgrade-all|uninstall|uninstall-all|reinstall|reinstall-all|install-all, ensurepath",
    },
    undoable: "list, environment, --version|--help",
  },
  uv: {
    valueFlags:
      "--directory --project --python -p --config-file --cache-dir -r --index --index-url --default-index --publish-url -t --token",
    dryRunFlags: "--dry-run",
    irreversible: {
      [publishes]: "publish",
      [installsOutside]:
        "tool install|upgrade|uninstall|update-shell, python install|uninstall|upgrade, self update",
      [installsGlobally]: "pip install|uninstall|sync --system|--break-system-packages",
    },
    undoable:
      "lock, tree, export, init, version, venv, build, tool list|dir, python list|find|dir|pin, pip list|freeze|show|check|tree|compile, cache dir|size, help, --version|--help",
  },
  "poetry pdm hatch flit": {
    valueFlags: "-C --directory -P --project -p -r --repository --repo -u -e --env",
    dryRunFlags: "--dry-run",
    irreversible: {
      [publishes]: "publish, upload",
      [installsOutside]: "self add|remove|update|install, python install|remove",
    },
    undoable:
      "show, list, check, lock, build, version, env list|info|show|find, config --list, info, search, init, new, export, --version|--help",
  },
  twine: { irreversible: { [publishes]: "upload, register" }, undoable: "check, --version|--help" },
  "conda mamba micromamba anaconda": {
    dryRunFlags: "-d --dry-run",
    irreversible: {
      [publishes]: "upload",
      "deletes an environment": "env remove, remove --all, remove -n|--name --all",
      [installsGlobally]: "install|update|upgrade|remove|uninstall -n|--name, update conda",
    },
    valueFlags: "-f --file -c --channel -p --prefix",
    undoable:
      "list, info, search, env list|export, config --show|--get, activate, deactivate, --version|--help",
  },
  gem: {
    valueFlags: "-v --version --host -k --key -i --install-dir -n --bindir",
    irreversible: {
      [publishes]: "push",
      [registryChange]: "yank, owner -a|-r|--add|--remove",
      [installsGlobally]: "install !-i|--install-dir|--explain, update !--explain, uninstall, cleanup",
    },
    undoable:
      "list, search, info, environment, env, which, contents, dependency, outdated, build, specification, fetch, unpack, --version|--help",
  },
  "mvn mvnw": {
    valueFlags: "-f --file -s --settings -pl --projects -P",
    dryRunFlags: "-DdryRun -DdryRun=true",
    hasSingleDashNames: true,
    irreversible: {
      [publishes]:
        "** deploy, ** release:perform|release:prepare, ** *:deploy, ** *:deploy-file, ** nexus-staging:*, ** jreleaser:*, ** site-deploy, ** central-publishing:publish",
    },
    undoable: "dependency:*, help:*, versions:display-*, --version|-v|-version|--help",
  },
  "gradle gradlew": {
    valueFlags: "-p --project-dir -b --build-file -I --init-script -x --exclude-task",
    dryRunFlags: "-m --dry-run",
    irreversible: {
      [publishes]:
        "** publish, ** *:publish, ** publishAll*, ** publish*ToMaven?entral*, ** publish*Repository !--dry-run, ** publishPlugin|publishPlugins, ** *:publishPlugin*, ** uploadArchives, ** bintrayUpload, ** closeAndRelease*, ** jreleaser*, ** publishBundle|publishReleaseBundle",
    },
    undoable: "tasks, projects, dependencies, properties, help, wrapper, clean, --version|-v|--help",
  },
  sbt: {
    irreversible: {
      [publishes]: "** publish, ** publishSigned, ** */publish, ** sonatype*, ** ci-release, ** release",
    },
  },
  "lein boot clojure clj": { irreversible: { [publishes]: "deploy, release" } },
  dotnet: {
    irreversible: {
      [publishes]: "nuget push",
      [registryChange]: "nuget delete",
      [installsGlobally]:
        "tool install|update|uninstall -g|--global, workload install|uninstall|update|repair",
      "changes a database": "ef database update|drop",
    },
    undoable:
      "restore, format, list, sln, new, add, remove, clean, nuget list|locals|verify, tool list|search|restore, --info|--version|--list-sdks|--list-runtimes|--help",
  },
  nuget: {
    irreversible: { [publishes]: "push", [registryChange]: "delete" },
    undoable: "list, search, restore, pack, help",
  },
  "dart flutter pub": {
    dryRunFlags: "-n --dry-run",
    irreversible: {
      [publishes]: "pub publish, publish, pub lish, lish",
      [installsOutside]:
        "pub global activate|deactivate, global activate|deactivate, upgrade, downgrade, channel *",
    },
    undoable:
      "analyze, format, doctor, devices, pub get|deps|outdated|add|remove|upgrade, get, deps, --version|--help",
  },
  mix: {
    dryRunFlags: "--dry-run",
    irreversible: {
      [publishes]: "hex.publish",
      [registryChange]: "hex.retire|hex.owner|hex.organization",
      [installsOutside]:
        "archive.install|archive.uninstall|escript.install|escript.uninstall|local.hex|local.rebar",
      "deletes a database": "ecto.drop|ecto.reset",
      "changes a database": "ecto.rollback",
    },
    undoable: "deps, deps.get, deps.tree, format, hex.info|hex.outdated|hex.search, help, clean",
  },
  "rebar3 gleam": {
    irreversible: { [publishes]: "hex publish, publish", [registryChange]: "hex retire|revert" },
  },
  "cabal stack": {
    dryRunFlags: "--dry-run",
    irreversible: {
      [publishes]: "upload --publish, upload",
      [installsOutside]: "install !--lib|--installdir",
    },
    undoable: "update, list, info, freeze, check, sdist, ls, path, --version|--help",
  },
  "opam opam-publish": {
    dryRunFlags: "--dry-run --show-actions",
    irreversible: { [publishes]: "publish, submit", "deletes an environment": "switch remove" },
    undoable:
      "list, show, info, search, env, switch list|show, var, config list|var, update, --version|--help",
  },
  composer: {
    valueFlags: "-d --working-dir",
    dryRunFlags: "--dry-run",
    irreversible: { [installsOutside]: "global require|update|remove|install, self-update|selfupdate" },
    undoable:
      "show, info, validate, outdated, why, depends, licenses, audit, diagnose, status, search, init, dump-autoload, --version|--help",
  },
  pod: {
    irreversible: {
      [publishes]: "trunk push, repo push",
      [registryChange]: "trunk delete|deprecate|add-owner|remove-owner",
    },
    undoable: "list, search, outdated, spec lint|cat, lib lint, --version|--help",
  },
  luarocks: {
    irreversible: {
      [publishes]: "upload",
      [installsOutside]: "install !--tree, remove !--tree, make !--tree",
    },
    undoable: "list, search, show, path, lint, which, --version|--help",
  },
  "conan vcpkg": {
    irreversible: { [publishes]: "upload", [registryChange]: "remove ** -r|--remote" },
    undoable: "list, search, inspect, graph, info, --version|--help",
  },
  "charmcraft snapcraft rockcraft": {
    irreversible: {
      [publishes]: "upload|push, release|promote, upload-resource, upload-metadata",
      [registryChange]: "close, register, register-library",
    },
  },
  goreleaser: {
    irreversible: { [publishes]: "release !--snapshot|--skip, publish, continue" },
    undoable: "check, build, healthcheck, init, release",
  },
  "huggingface-cli hf": {
    irreversible: {
      [publishes]: "upload, upload-large-folder, repo create, repos create",
      "deletes a repository": "repo delete, repo-files delete, delete",
    },
    undoable: "download, whoami, env, scan-cache, version",
  },
  ollama: {
    irreversible: { [publishes]: "push", "deletes a model": "rm" },
    undoable: "list, ls, ps, show, --version|--help",
  },
  xcrun: {
    irreversible: {
      [publishes]:
        "altool --upload-app|--upload-package, notarytool submit|store-credentials, iTMSTransporter",
    },
  },
  fastlane: {
    irreversible: {
      [publishes]:
        "deliver, pilot, supply, upload_to_app_store, upload_to_testflight, upload_to_play_store, run upload_*, release|deploy|beta",
    },
  },
  eas: {
    irreversible: {
      [publishes]: "submit, update",
      "deploys a program": "deploy, build --auto-submit",
      "deletes an update": "update:delete, branch:delete, channel:delete",
    },
  },
  expo: { irreversible: { [publishes]: "publish" } },
  // Installers of the system
  "apt apt-get aptitude": {
    valueFlags: "-o -c -t --option --target-release",
    dryRunFlags: "-s --simulate --just-print --dry-run --print-uris -d --download-only",
    irreversible: {
      [installsGlobally]:
        "install|reinstall|upgrade|dist-upgrade|full-upgrade|safe-upgrade|build-dep|remove|purge|autoremove|autopurge|satisfy, dselect-upgrade, edit-sources",
    },
    undoable:
      "update, list, show, search, policy, changelog, download, source, check, depends, rdepends, clean, autoclean, moo, --version|--help",
  },
  "dnf yum microdnf zypper": {
    dryRunFlags: "--assumeno --downloadonly -D --dry-run",
    irreversible: {
      [installsGlobally]:
        "install|in|reinstall|upgrade|update|up|dup|downgrade|remove|rm|erase|autoremove|groupinstall|swap|localinstall|distro-sync|patch|addrepo|ar|removerepo|rr, group install|remove, module enable|disable|install",
    },
    undoable:
      "list, info, search, se, provides, repolist, lr, check-update, makecache, refresh, history, repoquery, deplist, clean, --version|--help",
  },
  "pacman yay paru": {
    dryRunFlags: "-p --print",
    irreversible: {
      [installsGlobally]:
        "-S !-s|-i|-l|-g|-p, -R, -U, --sync !--search|--info|--list|--groups|--print, --remove, --upgrade",
    },
    undoable: "-Q|--query, -S|--sync, -F|--files, -T, -V|--version",
  },
  apk: {
    dryRunFlags: "-s --simulate",
    irreversible: { [installsGlobally]: "add|del|upgrade|fix" },
    undoable: "info, search, list, update, policy, version, stats, audit, fetch",
  },
  brew: {
    dryRunFlags: "-n --dry-run",
    irreversible: {
      [installsGlobally]:
        "install|reinstall|uninstall|remove|rm|upgrade|link|unlink|tap|untap|cleanup|autoremove|pin|unpin, bundle $, bundle install|cleanup, cask install|uninstall",
      "changes a service of the machine": "services start|stop|restart|run|kill|cleanup",
    },
    undoable:
      "list, ls, info, search, outdated, deps, uses, config, doctor, --prefix|--cellar|--repository|--cache|--version|--help, services list|info, bundle check|list, update, home, cat, log, desc, leaves",
  },
  "port snap flatpak choco scoop winget": {
    dryRunFlags: "--dry-run --whatif --noop",
    irreversible: {
      [installsGlobally]:
        "install|uninstall|remove|refresh|upgrade|update|selfupdate|activate|deactivate|revert|reset|override|pin",
    },
    undoable: "list, ls, search, find, info, show, status, outdated, --version|--help",
  },
  dpkg: {
    dryRunFlags: "--dry-run --no-act --simulate",
    irreversible: { [installsGlobally]: "-i|--install|-r|--remove|-P|--purge|--configure|--unpack|-a" },
    undoable:
      "-l|--list|-L|--listfiles|-s|--status|-S|--search|-I|--info|-c|--contents|--print-architecture|-p|--version|-x|--extract",
  },
  rpm: {
    dryRunFlags: "--test",
    irreversible: {
      [installsGlobally]:
        "-i|--install|-U|--upgrade|-F|--freshen|-e|--erase|--reinstall|--import !-q|--query|-p",
    },
    undoable: "-q|--query|-V|--verify|--version|--eval|-E",
  },
  "nix-env nix-channel": {
    dryRunFlags: "--dry-run",
    irreversible: { [installsOutside]: "-i|--install|-e|--uninstall|-u|--upgrade|--add|--remove|--update" },
    undoable: "-q|--query, --list|--list-generations",
  },
  nix: {
    irreversible: {
      [installsOutside]: "profile install|add|remove|upgrade|wipe-history",
      [publishes]: "copy --to",
    },
    undoable:
      "build, eval, search, flake show|metadata|check|lock|update|init, show-derivation, path-info, fmt, --version|--help",
  },
  "nix-collect-garbage": {
    dryRunFlags: "--dry-run",
    otherwise: { irreversible: "deletes programs that were installed" },
  },
};
