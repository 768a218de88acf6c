import type { ReversibilityRecord } from "./forms.ts";

const deploys = "deploys a program";
const clusterChange = "changes a Kubernetes cluster";
const cloudChange = "changes resources in a cloud";
const databaseChange = "changes a database";
const databaseLoss = "deletes data of a database";
const imagePush = "publishes a container image";

const cloudReads =
  "describe|describe-*|list|list-*|show|show-*|get|get-*|ls|read|info|version|help|search|print-*|browse|status|check-*|exists|download|logs|tail|wait|validate|estimate|export|diff";
const cloudWrites =
  "create|create-*|delete|delete-*|destroy|remove|remove-*|rm|deploy|update|update-*|set|set-*|unset|add|add-*|apply|patch|put|start|stop|restart|reset|resize|scale|move|mv|import|restore|failover|promote|rollback|attach|detach|enable|disable|enable-*|disable-*|submit|publish|purge|invoke|call|execute|run|replace|rename|regenerate|renew|revoke|grant|assign|cancel|upload|upload-batch|delete-batch|sync|copy|cp|ssh|reboot|deallocate|redeploy|swap|clone|migrate|activate|deactivate";

const kubectlFlags =
  "-n --namespace --context --cluster --kubeconfig -s --server --user --token --as --as-group -l --selector --field-selector -f --filename -k --kustomize -o --output -c --container --request-timeout -p --patch --type --timeout --replicas --image --tail --since -L --field-manager --cache-dir";

/** Containers, clusters, clouds, hosts and databases. A key lists several names, separated by blanks. */
export const deployments: Record<string, ReversibilityRecord> = {
  "docker podman nerdctl": {
    valueFlags:
      "-H --host --context -c --config -l --log-level -p --project-name --profile --env-file --project-directory -t --tag --build-arg --target --platform --builder",
    irreversible: {
      [imagePush]:
        "push, image push, manifest push, compose ** push, buildx imagetools create, build|buildx --push, image build --push, compose ** build --push, plugin push, trust sign",
      "deletes volumes and their data":
        "volume rm|remove|prune, rm -v|--volumes, container rm -v|--volumes, compose ** down|rm -v|--volumes, system prune, system reset",
      "deletes stopped containers and their data": "container prune",
      "deletes images that may not be built again": "image prune -a|--all",
      "changes a running service":
        "stack deploy|up|rm|down, service create|update|rm|scale|rollback, swarm init|join|leave|update|ca, secret create|rm, config create|rm, node update|rm|promote|demote",
      "changes who is signed in": "login|logout",
    },
    undoable:
      "ps, images, logs, inspect, info, version, stats, top, port, diff, events, history, search, pull, build, tag, context ls|show|inspect, image ls|inspect|history|pull|build|tag, container ls|inspect|logs|stats|top, volume ls|inspect|create, network ls|inspect|create, system df|info|events, compose ** ps|logs|config|build|pull|images|ls|top|up|down|start|stop|restart|create|pause|unpause|version, start, stop, restart, pause, unpause, create, buildx build|ls|inspect|du|version, builder prune, stack ls|ps|services, service ls|ps|inspect|logs, manifest inspect, --version|--help",
  },
  "docker-compose podman-compose": {
    valueFlags: "-p --project-name --profile --env-file --project-directory --context -H --host",
    irreversible: {
      [imagePush]: "** push, ** build --push",
      "deletes volumes and their data": "** down|rm -v|--volumes",
    },
    undoable:
      "** ps|logs|config|build|pull|images|ls|top|up|down|start|stop|restart|create|pause|unpause|version, --version|--help",
  },
  "crane skopeo oras regctl": {
    dryRunFlags: "--dry-run",
    irreversible: {
      [imagePush]: "push, copy|cp ** docker://*, append, mutate, tag, index, image copy, attach",
      "deletes a container image": "delete, manifest delete, blob delete, repo delete",
    },
    undoable:
      "pull, inspect, list-tags, ls, manifest, digest, config, catalog, export, discover, validate, version",
  },
  cosign: {
    irreversible: { [imagePush]: "sign, attest, attach, upload, copy, clean" },
    undoable: "verify, verify-attestation, tree, triangulate, version",
  },
  "kubectl oc": {
    valueFlags: kubectlFlags,
    harmless: "apply view-last-applied, auth can-i, config *, rollout status|history",
    dryRunFlags: "--dry-run",
    irreversible: {
      "deletes a Kubernetes object": "delete",
      [clusterChange]:
        "apply, create, replace, patch, edit, scale, autoscale, set, label, annotate, taint, drain, cordon, uncordon, expose, run, debug, cp, certificate approve|deny, rollout restart|undo|pause|resume, new-app, new-project, start-build, adm, rollback, import-image, tag, policy, argo",
    },
    undoable:
      "get, describe, logs, top, explain, api-resources, api-versions, version, cluster-info, diff, wait, port-forward, proxy, kustomize, events, auth can-i|whoami, rollout status|history, config view|get-contexts|current-context|get-clusters|get-users|use-context|set-context, options, plugin list, status, whoami, projects, project, --help",
  },
  helm: {
    valueFlags: `${kubectlFlags} --kube-context --values --set --set-string --version --repo`,
    dryRunFlags: "--dry-run",
    irreversible: {
      [clusterChange]: "install, upgrade, uninstall, delete, del, un, rollback, test",
      "publishes a chart": "push, cm-push",
    },
    undoable:
      "list, ls, status, get, show, search, template, lint, history, env, version, dependency|dep, package, pull, fetch, create, repo list|update|add, plugin list, diff, --help",
  },
  "argocd flux istioctl linkerd cilium kubeadm velero kn": {
    dryRunFlags: "--dry-run",
    irreversible: {
      [clusterChange]:
        "app sync|delete|set|create|rollback|patch|terminate-op, proj|repo|cluster|account add|create|delete|set|rm|edit, bootstrap, install, uninstall, upgrade, reconcile, suspend, resume, create, delete, init, join, reset, service create|update|delete|apply, restore|backup|schedule create|delete",
    },
    undoable:
      "app list|get|diff|history|logs|manifests, get, list, logs, check, diff, trace, export, stats, tree, version, status, analyze, proxy-status, proxy-config, token list, service list|describe",
  },
  eksctl: {
    irreversible: { [cloudChange]: `${cloudWrites}|upgrade|drain|associate|scale` },
    undoable: `${cloudReads}|utils`,
  },
  "minikube kind k3d colima": {
    irreversible: { "deletes a local cluster": "delete|destroy, cluster delete" },
  },
  "skaffold devspace garden okteto": {
    irreversible: { [deploys]: "run, deploy, dev, delete, purge, apply, destroy, up" },
  },
  "terraform tofu terragrunt opentofu": {
    hasSingleDashNames: true,
    valueFlags: "--terragrunt-working-dir --working-dir",
    irreversible: {
      "changes cloud infrastructure":
        "apply, destroy, run-all apply|destroy|import, run apply|destroy, run --all apply|destroy, import, taint, untaint, refresh, stack run|apply|destroy",
      "changes the recorded state of cloud infrastructure":
        "state rm|mv|push|replace-provider, workspace delete, force-unlock",
    },
    undoable:
      "plan, validate, fmt, init, show, output, get, graph, providers, console, state list|show|pull, workspace list|show|new|select, version, test, run-all plan|validate|output|init, run plan|validate|output, -version|-help|--version|--help",
  },
  pulumi: {
    valueFlags: "-C --cwd -s --stack -c --config",
    irreversible: {
      "changes cloud infrastructure": "up|update, destroy|down, refresh, import, cancel, watch",
      "changes the recorded state of cloud infrastructure":
        "stack rm|rename|import, state delete|rename|move|unprotect",
    },
    undoable:
      "preview|pre, stack, stack ls|output|history|graph|export|select, config, logs, about, whoami, version, plugin ls, new",
  },
  cdk: {
    valueFlags: "-a --app -c --context --profile -o --output",
    irreversible: {
      "changes cloud infrastructure": "deploy, destroy, bootstrap, import, watch, rollback, gc, refactor",
    },
    undoable:
      "synth, synthesize, diff, list, ls, metadata, doctor, docs, init, context, notices, --version|--help",
  },
  "sam serverless sls chalice zappa sst": {
    valueFlags: "-s --stage -c --config -t --template --profile --region",
    irreversible: {
      "changes cloud infrastructure":
        "deploy, delete, destroy, remove, sync, rollback, publish, undeploy, update",
    },
    undoable: "build, validate, package, print, info, list, logs, local, init, --version|--help",
  },
  ansible: {
    valueFlags: "-i --inventory -a --args -m --module-name -u -e --extra-vars -l --limit",
    dryRunFlags: "-C --check --list-hosts --syntax-check",
    irreversible: { "changes other machines": "*" },
    undoable: "--version|--help",
  },
  "ansible-playbook ansible-pull": {
    valueFlags: "-i --inventory -u -e --extra-vars -l --limit -t --tags",
    dryRunFlags: "-C --check --list-hosts --list-tasks --list-tags --syntax-check",
    irreversible: { "changes other machines": "*" },
    undoable: "--version|--help",
  },
  "salt salt-ssh pssh pdsh fab cap pyinfra kamal mina": {
    dryRunFlags: "--dry --dry-run --dry-run-tasks --list -l -T --tasks",
    irreversible: { "changes other machines": "*" },
    undoable: "--version|--help",
  },
  packer: {
    irreversible: { [cloudChange]: "build" },
    undoable: "validate, fmt, inspect, init, console, version",
  },
  vagrant: {
    irreversible: { "deletes a virtual machine": "destroy, box remove, snapshot delete" },
    undoable: "status, global-status, validate, version, box list, port, ssh-config, snapshot list",
  },
  nomad: {
    irreversible: {
      [deploys]:
        "job run|stop|revert|scale|restart|dispatch|promote, run, stop, system gc, node drain|eligibility, alloc stop|restart|exec, var put|purge, volume delete|deregister",
    },
    undoable:
      "status, plan, job plan|status|history|inspect|validate, node status, alloc status|logs, version",
  },
  consul: {
    irreversible: {
      "changes shared settings":
        "kv put|delete|import, acl, config write|delete, leave, force-leave, services register|deregister",
    },
    undoable: "kv get|export, members, info, catalog, config read|list, version",
  },
  "vault bao": {
    irreversible: {
      "changes shared secrets":
        "write, delete, patch, kv put|delete|destroy|patch|undelete|rollback|metadata, secrets enable|disable|move|tune, auth enable|disable, policy write|delete, token revoke|create, lease revoke, operator",
    },
    undoable:
      "read, list, status, kv get|list, policy read|list, secrets list, auth list, token lookup, version",
  },
  // Operations are named by their verb (`describe-instances`).
  aws: {
    valueFlags:
      "--profile --region --output --query --endpoint-url --cli-input-json --cli-input-yaml --filters --filter --bucket --key --exclude --include --acl --function-name --stack-name --cluster --instance-ids",
    dryRunFlags: "--dryrun --dry-run --generate-cli-skeleton",
    irreversible: {
      "changes objects in S3": "s3 rm|mb|rb|website, s3 cp|mv|sync ** s3://* $, s3 mv ** s3://*",
      "changes who is signed in": "configure set, configure $, sso login|logout, configure sso|import",
    },
    undoable:
      "s3 ls|presign|cp|sync, * describe-*, * list-*, * get-*, * head-*, * batch-get-*, * search-*, * lookup-*, * estimate-*, * validate-*, * simulate-*, * filter-log-events|start-query|tail|scan|query|wait|help|test-*|preview-*|decode-*|select-object-content, configure list|get|list-profiles, sts *, eks update-kubeconfig, help, --version",
    otherwise: { irreversible: "changes resources in AWS" },
  },
  gcloud: {
    harmless: "config *, components list, auth list|print-*, * get-credentials",
    valueFlags: "--project --region --zone --format --filter --account --configuration --limit --location",
    irreversible: {
      "changes who is signed in":
        "auth login|revoke|activate-service-account, auth application-default login|revoke, init",
      [cloudChange]: `app deploy, functions deploy, run deploy, builds submit, * ${cloudWrites}, * * ${cloudWrites}, * * * ${cloudWrites}, * * * * ${cloudWrites}`,
    },
    undoable: `info, version, topic, help, config *, components list, auth list|print-*, * ${cloudReads}, * * ${cloudReads}, * * * ${cloudReads}, * * * * ${cloudReads}, --version|--help`,
  },
  az: {
    harmless: "account set|show|list, config *, configure, * get-credentials, extension list|show",
    valueFlags: "--subscription -g --resource-group -n --name --query -o --output -l --location",
    irreversible: {
      "changes who is signed in": "login|logout",
      [cloudChange]: `* ${cloudWrites}, * * ${cloudWrites}, * * * ${cloudWrites}, * * * * ${cloudWrites}, webapp up, rest`,
    },
    undoable: `version, find, * ${cloudReads}, * * ${cloudReads}, * * * ${cloudReads}, * * * * ${cloudReads}, account set, --version|--help`,
  },
  "gsutil s3cmd s5cmd": {
    valueFlags: "-p -h -c --config --endpoint-url",
    dryRunFlags: "-n --dry-run",
    irreversible: {
      "changes objects in a cloud":
        "** rm|rb|mb|del|put|mv|setacl|acl|iam|rewrite|delete, ** cp|rsync|sync|copy ** gs://*|s3://* $",
    },
    undoable: "** ls|cat|du|stat|info|la|get|hash|version|cp|rsync|sync|help",
  },
  rclone: {
    valueFlags: "--config --transfers --checkers --bwlimit --include --exclude --filter",
    dryRunFlags: "-n --dry-run -i --interactive",
    irreversible: {
      "changes files on another machine":
        "copy|sync|move|copyto|moveto|bisync ** *:* $, delete|deletefile|purge|rmdir|rmdirs|cleanup|dedupe|rcat|copyurl|settier|link",
    },
    undoable:
      "ls, lsl, lsd, lsf, lsjson, tree, cat, size, about, check, listremotes, version, copy, sync, copyto, config show|file|dump",
  },
  "doctl linode-cli hcloud scw oci ibmcloud vultr-cli exo civo aliyun tccli yc openstack": {
    irreversible: { [cloudChange]: `* ${cloudWrites}, * * ${cloudWrites}, * * * ${cloudWrites}` },
    undoable: `* ${cloudReads}, * * ${cloudReads}, * * * ${cloudReads}, version, --version|--help`,
  },
  "fly flyctl": {
    valueFlags: "-a --app -c --config -o --org -r --region",
    irreversible: {
      [deploys]: "deploy, launch",
      [cloudChange]:
        "apps|app create|destroy|restart|move, secrets set|unset|import|deploy, scale count|vm|memory, volumes|volume|vol create|destroy|delete|extend, machine|machines|m run|create|destroy|start|stop|restart|update|clone|kill, postgres|pg create|attach|detach|failover, ips|certs allocate*|release|add|remove|create|delete, redis|mysql|storage create|destroy|update, destroy, restart, suspend, resume, ssh console|issue",
    },
    undoable:
      "status, logs, version, doctor, platform, auth whoami, apps list, machine list|status, volumes list, secrets list, scale show, releases, config show|validate, info, open, proxy",
  },
  heroku: {
    valueFlags: "-a --app -r --remote -t --team",
    irreversible: {
      [databaseLoss]: "pg:reset, pg:push",
      [cloudChange]:
        "create, apps:create|apps:destroy|apps:rename|destroy, config:set|config:unset, ps:scale|ps:restart|ps:stop|ps:type, dyno:*, restart, scale, addons:create|addons:destroy|addons:attach|addons:detach, domains:add|domains:remove, releases:rollback|rollback, container:push|container:release, pg:promote|pg:upgrade|pg:killall, pipelines:promote|pipelines:create, maintenance:on|maintenance:off, access:*, run, run:*",
    },
    undoable:
      "apps, info, logs, status, config, config:get, ps, releases, addons, domains, pg:info, pg:backups, regions, version, local, --version|--help",
  },
  "vercel now": {
    valueFlags: "--cwd -S --scope -t --token -A --local-config -e --env -b --build-env",
    irreversible: {
      [deploys]: "$ !--version|--help|-v|-h, deploy, redeploy, promote, rollback, --prod",
      [cloudChange]:
        "remove|rm, env add|rm|update, alias set|rm, domains add|rm|buy|move|transfer-in, dns add|rm|import, certs issue|rm, project add|rm, secrets add|rm|rename, integration add|remove, blob put|del, rolling-release|rr",
    },
    undoable:
      "list, ls, inspect, logs, env ls|pull, pull, build, dev, whoami, alias ls, domains ls, dns ls, link, project ls, help, --version|--help",
  },
  "netlify ntl": {
    valueFlags: "-s --site --filter --auth -d --dir",
    irreversible: {
      [deploys]: "deploy, deploy:*",
      [cloudChange]:
        "sites:create|sites:delete, env:set|env:unset|env:import|env:clone, functions:invoke, api, blobs:set|blobs:delete, init",
    },
    undoable:
      "status, dev, build, open, link, unlink, sites:list, env:list|env:get, logs, help, --version|--help",
  },
  wrangler: {
    valueFlags: "-c --config -e --env --cwd",
    dryRunFlags: "--dry-run",
    irreversible: {
      [deploys]:
        "deploy, publish, pages deploy|publish, versions upload|deploy, rollback, triggers deploy, containers push",
      [databaseChange]: "d1 execute|migrations ** --remote, d1 delete|import|create|time-travel",
      [cloudChange]:
        "delete, secret put|delete|bulk, kv ** put|delete|create|bulk, kv:* put|delete|create, r2 ** put|delete|create, queues create|delete|update, pages project create|delete, pages deployment delete, hyperdrive create|delete|update, vectorize create|delete|insert, dispatch-namespace create|delete, workflows trigger|delete",
    },
    undoable:
      "dev, pages dev, build, types, whoami, tail, deployments, versions list|view, kv ** list|get, d1 list|info, r2 ** get|list, secret list, init, check, docs, --version|--help",
  },
  firebase: {
    valueFlags: "-P --project --token -c --config --only",
    dryRunFlags: "--dry-run",
    irreversible: {
      [deploys]: "deploy, hosting:channel:deploy, hosting:clone, apphosting:rollouts:create",
      [databaseLoss]: "firestore:delete, database:remove",
      [cloudChange]:
        "database:set|database:update|database:push|database:import, functions:delete, functions:secrets:set|functions:secrets:destroy, functions:config:set|functions:config:unset, hosting:disable|hosting:channel:delete, hosting:sites:*, projects:create, auth:import, remoteconfig:rollback, extensions, apps:create, appdistribution:distribute",
    },
    undoable:
      "emulators:start|emulators:exec, serve, projects:list, functions:list|functions:log|functions:config:get, hosting:channel:list, use, target, init, database:get, auth:export, --version|--help",
  },
  supabase: {
    valueFlags: "--workdir --project-ref --password",
    dryRunFlags: "--dry-run",
    irreversible: {
      [databaseLoss]: "db reset --linked|--db-url",
      [databaseChange]: "db push, migration repair|up|down --linked|--db-url, migration squash",
      [deploys]: "functions deploy",
      [cloudChange]:
        "functions delete, secrets set|unset, projects create|delete|pause, branches create|delete|update, config push, storage rm|cp|mv",
    },
    undoable:
      "start, stop, status, db diff|pull|dump|lint|start, migration new|list, gen, functions list|serve|new, projects list, link, init, secrets list, inspect, --version|--help",
  },
  railway: {
    irreversible: {
      [deploys]: "up, redeploy, deploy",
      [cloudChange]:
        "down, delete, variables --set, add, init, environment new|delete, domain, volume add|delete, ssh, connect",
    },
    undoable: "status, logs, list, whoami, variables, environment, link, open, --version|--help",
  },
  "render surge gh-pages dpl eb cf modal amplify shopify sanity scalingo clever dokku deployctl": {
    dryRunFlags: "--dry-run",
    irreversible: {
      [deploys]:
        "deploy, push, up, publish, promote, release, restart, terminate, create, delete, destroy, setenv, scale, theme push|publish, app deploy, svc deploy|delete, env deploy|delete, apps:create|apps:destroy, config:set, ps:scale, -d|--dist",
    },
    undoable: "status, logs, list, ls, info, dev, run, whoami, --version|--help",
  },
  "ng react-scripts": { irreversible: { [deploys]: "deploy" } },
  // Databases
  "dropdb dropuser": { irreversible: { [databaseLoss]: "** !--version|--help" } },
  "createdb createuser pg_restore mongorestore mongoimport mysqlimport clusterdb reindexdb vacuumdb pg_resetwal pg_rewind neo4j-admin":
    {
      valueFlags: "-h -p -U -d -f --host --port --username --dbname",
      irreversible: { [databaseChange]: "*, -d|--dbname, --db|--uri|--host" },
      undoable: "-l|--list|--version|--help",
    },
  mysqladmin: {
    valueFlags: "-u -h -P --user --host --port",
    irreversible: {
      [databaseLoss]: "drop|flush-*|kill|shutdown|reload|refresh",
      [databaseChange]: "create|password",
    },
    undoable: "status, ping, version, processlist, variables, extended-status",
  },
  prisma: {
    valueFlags: "--schema",
    irreversible: {
      [databaseLoss]: "migrate reset, db push --force-reset|--accept-data-loss",
      [databaseChange]: "migrate deploy|resolve, db push|execute|seed",
    },
    undoable:
      "generate, validate, format, studio, migrate status|diff, db pull, init, version, --version|--help",
  },
  "drizzle-kit": {
    irreversible: { [databaseChange]: "push, migrate, drop" },
    undoable: "generate, check, studio, introspect, pull",
  },
  "knex sequelize sequelize-cli typeorm mikro-orm node-pg-migrate db-migrate graphile-migrate": {
    irreversible: {
      [databaseLoss]:
        "db:drop, db:reset, schema:drop, reset, db:migrate:undo:all, schema:fresh, migration:fresh",
      [databaseChange]:
        "migrate:rollback|migrate:down, db:migrate:undo, migration:revert|migration:down, schema:sync|schema:update, down",
    },
    undoable:
      "migrate:make|migrate:list|migrate:status, migration:create|migration:generate|migration:show, model:generate, db:migrate:status",
  },
  alembic: {
    valueFlags: "-c --config -n -x",
    irreversible: { [databaseChange]: "downgrade !--sql, stamp" },
    undoable: "current, history, heads, branches, show, revision, check, upgrade --sql, merge",
  },
  "flyway liquibase": {
    irreversible: {
      [databaseLoss]: "clean, drop-all|dropAll",
      [databaseChange]:
        "migrate, repair, baseline, undo, update, rollback, rollback-*, update-*, execute-sql, changelog-sync, release-locks",
    },
    undoable: "info, validate, status, history, diff, update-sql, rollback-sql, generate-changelog",
  },
  "sqlx sea-orm-cli diesel": {
    irreversible: {
      [databaseLoss]: "database drop|reset, migrate reset|fresh",
      [databaseChange]: "migrate|migration revert|redo, migrate down|refresh",
    },
    undoable: "prepare, migrate|migration info|add|generate|list|status, print-schema",
  },
  "goose migrate dbmate golang-migrate": {
    irreversible: {
      [databaseLoss]: "** drop, ** reset",
      [databaseChange]: "** down, ** down-to, ** redo, ** rollback, ** force",
    },
    undoable: "** status, ** version, ** create, ** new, ** validate, ** dump",
  },
  "rails rake": {
    irreversible: {
      [databaseLoss]:
        "** db:drop, ** db:reset, ** db:purge, ** db:schema:load, ** db:migrate:reset, ** db:seed:replant, ** db:drop:*",
      [databaseChange]: "** db:rollback, ** db:migrate:down|db:migrate:redo",
      "publishes a package": "release",
    },
    undoable: "routes, stats, notes, about, db:version, db:migrate:status, -T|--tasks|--version",
  },
  "manage.py django-admin": {
    irreversible: { [databaseLoss]: "flush, reset_db, sqlflush --run", "sends a message": "sendtestemail" },
    undoable:
      "check, showmigrations, makemigrations, diffsettings, inspectdb, sqlmigrate, dumpdata, startapp, startproject",
  },
  artisan: {
    dryRunFlags: "--pretend",
    irreversible: {
      [databaseLoss]: "migrate:fresh|migrate:reset|migrate:refresh|db:wipe",
      [databaseChange]: "migrate:rollback",
    },
    undoable:
      "list, route:list, about, migrate:status, make:*, cache:clear|config:clear|view:clear|route:clear",
  },
  dbt: {
    irreversible: { [databaseChange]: "run, build, seed, snapshot, run-operation, clone, retry" },
    undoable: "compile, parse, debug, deps, ls, list, docs, clean, source, --version|--help",
  },
  bq: {
    dryRunFlags: "--dry_run --dry-run",
    hasSingleDashNames: true,
    irreversible: { [databaseChange]: "rm, mk, cp, load, insert, update, truncate, undelete, cancel" },
    undoable: "ls, show, head, extract, version, help",
  },
};
