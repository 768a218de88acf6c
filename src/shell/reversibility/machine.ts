import type { ReversibilityRecord } from "./forms.ts";

const disk = "overwrites a disk";
const service = "changes a service of the machine";
const settings = "changes settings of the machine";
const users = "changes the users of the machine";
const message = "sends a message";
const asAnother = "runs a command as another user";
const stop = "stops the machine";
const jobs = "changes scheduled jobs";

const always = (reason: string): ReversibilityRecord => ({
  irreversible: { [reason]: "**" },
});

/** The machine: users, services, disks, processes, messages. A key lists several names, separated by blanks. */
export const machine: Record<string, ReversibilityRecord> = {
  // Options with a value are read from the wrapper table.
  "sudo doas pkexec gksudo run0 runuser ksu": {
    valueFlags: "-u -g -h -p -C -T -r -t -U -D -R --user --group --host --prompt --chdir",
    irreversible: { [asAnother]: "*, -i|-s|--login|--shell|-e|--edit" },
    otherwise: "undoable",
  },
  "su newgrp sg gosu su-exec": always(asAnother),
  "mail mailx s-nail": { valueFlags: "-s -r -a -A -c -b", irreversible: { [message]: "*, -s|-t" } },
  "sendmail msmtp mutt neomutt swaks ssmtp postdrop mpack": {
    irreversible: { [message]: "** !--version|--help" },
  },
  "wall write slackcat telegram-send ntfy apprise": { irreversible: { [message]: "*, publish|pub|send" } },
  crontab: {
    valueFlags: "-u",
    irreversible: { "deletes all scheduled jobs": "-r", [jobs]: "-e, *" },
    undoable: "-l",
  },
  "systemctl rc-service rc-update service initctl sv s6-rc": {
    valueFlags: "-n --lines -o --output -H --host -M --machine -t --type -p --property",
    irreversible: {
      [stop]: "reboot|poweroff|halt|suspend|hibernate|kexec|rescue|emergency|default|isolate",
      [service]:
        "start|stop|restart|reload|try-restart|reload-or-restart|enable|disable|reenable|mask|unmask|kill|set-property|edit|link|preset|revert|reset-failed|daemon-reload|daemon-reexec|clean|set-default|add|del, * start|stop|restart|reload|force-reload|zap",
    },
    undoable:
      "status, show, cat, list-*, is-active, is-enabled, is-failed, get-default, show-environment, help, * status, --status-all, $",
  },
  launchctl: {
    irreversible: {
      [service]:
        "load|unload|start|stop|bootstrap|bootout|enable|disable|kickstart|remove|kill|submit|setenv|unsetenv|config",
    },
    undoable: "list, print, print-disabled, blame, version, getenv, help",
  },
  "shutdown reboot poweroff halt init telinit": { irreversible: { [stop]: "** !--help|-c" } },
  "killall pkill skill": {
    irreversible: { "ends all processes of that name": "** !-l|--list|-V|--version" },
    undoable: "-l|--list|-V|--version",
  },
  "mkfs mke2fs mkswap wipefs blkdiscard sgdisk sfdisk cfdisk parted partprobe gdisk cryptsetup badblocks hdparm tune2fs resize2fs zpool mdadm":
    {
      dryRunFlags: "-n --no-act -l --list -p --print --dump -d",
      irreversible: { [disk]: "*" },
      undoable: "--version|--help|-V",
    },
  fdisk: { dryRunFlags: "-l --list -s --getsz", irreversible: { [disk]: "*" } },
  "lvremove vgremove pvremove lvreduce lvresize lvcreate vgcreate pvcreate zfs btrfs": {
    harmless: "list|get, subvolume list|show, filesystem show|df|usage",
    dryRunFlags: "-t --test -n",
    irreversible: { [disk]: "*" },
  },
  diskutil: {
    irreversible: { [disk]: "erase*|partitionDisk|reformat|zeroDisk|randomDisk|secureErase|apfs" },
    undoable: "list, info, activity",
  },
  "mount umount swapon swapoff losetup": { irreversible: { [settings]: "*, -a|--all" }, undoable: "-l, $" },
  "useradd userdel usermod adduser deluser groupadd groupdel groupmod passwd chpasswd chsh chfn gpasswd visudo vipw":
    { irreversible: { [users]: "** !--help|--version|-S|--status" } },
  "iptables ip6tables nft ufw firewall-cmd pfctl": {
    irreversible: {
      [settings]:
        "-A|-D|-F|-I|-P|-X|-R|-N|-Z|--append|--delete|--flush|--insert|--policy, add|delete|flush|insert|replace|create|destroy, allow|deny|reject|limit|enable|disable|reset|default|reload|route, --add-*|--remove-*|--permanent|--reload, -f|-e|-d",
    },
    undoable: "-L|-S|--list|--list-rules, list, status, show, --list-all|--state|--get-*, --version",
  },
  sysctl: { irreversible: { [settings]: "-w|--write|-p|--load, *=*" }, otherwise: "undoable" },
  "hostnamectl timedatectl localectl": {
    irreversible: { [settings]: "set-*, hostname *" },
    otherwise: "undoable",
  },
  "update-alternatives update-grub grub-install dpkg-reconfigure locale-gen modprobe rmmod insmod setenforce semanage":
    { irreversible: { [settings]: "*, $ !--help" }, undoable: "--list|--display|--query|-n|-l" },
  defaults: {
    irreversible: { [settings]: "write|delete|rename|import" },
    undoable: "read, read-type, find, domains, export",
  },
  "networksetup scutil pmset csrutil spctl nvram systemsetup dscl": {
    irreversible: { [settings]: "-set*|-remove*|-create*|-add*|-delete|--set|--prefs" },
  },
  "nmcli netplan": {
    irreversible: {
      [settings]:
        "con|connection up|down|add|modify|delete|edit, dev|device connect|disconnect|delete|set, radio|networking on|off, apply, try",
    },
  },
  gpg: {
    irreversible: {
      "deletes a key": "--delete-keys|--delete-secret-keys|--delete-secret-and-public-keys",
      "publishes a key": "--send-keys",
    },
    otherwise: "undoable",
  },
  security: { irreversible: { "changes stored passwords": "delete-*|add-*|set-*|create-*|import" } },
  pass: {
    irreversible: { "changes stored passwords": "rm|remove|delete|insert|add|edit|generate|mv|cp" },
    undoable: "ls, show, find, grep, $",
  },
  "ssh-copy-id": { dryRunFlags: "-n", irreversible: { "changes files on another machine": "*" } },
  history: { irreversible: { "deletes the history of the shell": "-c" }, otherwise: "undoable" },
  "ip ifconfig route": {
    irreversible: { [settings]: "** add|del|delete|set|flush|change|replace|append|up|down" },
    otherwise: "undoable",
  },
  virsh: {
    irreversible: {
      "changes a virtual machine":
        "destroy|undefine|start|shutdown|reboot|define|create|delete|vol-delete|snapshot-delete|snapshot-revert|migrate|edit",
    },
    undoable: "list, dominfo, dumpxml, domstate, net-list, pool-list, vol-list",
  },
  // Known to the shell alone
  "set unset shopt export declare typeset local readonly read wait let mapfile readarray getopts times jobs fg bg disown eval trap alias unalias ulimit umask cd pushd popd dirs":
    { otherwise: "undoable" },
  "find fd pgrep ps top htop free uptime df lsof netstat ss lscpu lsblk lsmod lspci lsusb dmesg journalctl who w last groups getent locale tput clear dig nslookup host whois ping traceroute tsc ldd nm objdump readelf xmllint shellcheck tokei cloc scc dot":
    { otherwise: "undoable" },
};

/** The reasons that only concern the machine, which is thrown away with its container. */
export const machineReasons: ReadonlySet<string> = new Set([
  service,
  settings,
  users,
  asAnother,
  "installs programs for the whole machine",
  "installs programs outside the workspace",
  "ends all processes of that name",
  "ends a process",
]);
