//! Programs that build the image.

use workspace::packages::{Prerequisite, exists, runs};

/// Programs that build the image and test it.
pub(super) const PREREQUISITES: &[Prerequisite] = &[
    Prerequisite {
        package: "mmdebstrap",
        reason: "assembles Debian's packages",
        is_installed: || runs("mmdebstrap", "--version"),
    },
    Prerequisite {
        package: "debian-archive-keyring",
        reason: "the keys of Debian's archive",
        is_installed: || exists("/usr/share/keyrings/debian-archive-keyring.gpg"),
    },
    Prerequisite {
        package: "squashfs-tools",
        reason: "packs the system",
        is_installed: || exists("/usr/bin/mksquashfs"),
    },
    Prerequisite {
        package: "binutils",
        reason: "strips the daemon",
        is_installed: || runs("strip", "--version"),
    },
    Prerequisite {
        package: "fdisk",
        reason: "partitions the disk",
        is_installed: || exists("/usr/sbin/sfdisk"),
    },
    Prerequisite {
        package: "dosfstools",
        reason: "makes the boot partition",
        is_installed: || exists("/usr/sbin/mkfs.vfat"),
    },
    Prerequisite {
        package: "mtools",
        reason: "fills the boot partition",
        is_installed: || exists("/usr/bin/mcopy"),
    },
    Prerequisite {
        package: "grub-common",
        reason: "makes the boot loader",
        is_installed: || exists("/usr/bin/grub-mkimage"),
    },
    Prerequisite {
        package: "grub-pc-bin",
        reason: "the boot loader for BIOS",
        is_installed: || exists("/usr/lib/grub/i386-pc/boot.img"),
    },
    Prerequisite {
        package: "grub-efi-amd64-bin",
        reason: "the boot loader for UEFI",
        is_installed: || exists("/usr/lib/grub/x86_64-efi/moddep.lst"),
    },
    Prerequisite {
        package: "qemu-utils",
        reason: "makes a qcow2 of the disk",
        is_installed: || runs("qemu-img", "--version"),
    },
    Prerequisite {
        package: "rauc",
        reason: "makes and signs updates",
        is_installed: || runs("rauc", "--version"),
    },
    Prerequisite {
        package: "openssl",
        reason: "makes the keys of updates",
        is_installed: || runs("openssl", "version"),
    },
    Prerequisite {
        package: "openssh-client",
        reason: "ssh, scp and ssh-keygen",
        is_installed: || runs("ssh", "-V"),
    },
    Prerequisite {
        package: "qemu-system-x86",
        reason: "runs the image",
        is_installed: || runs("qemu-system-x86_64", "--version"),
    },
    Prerequisite {
        package: "ovmf",
        reason: "UEFI firmware",
        is_installed: || exists("/usr/share/OVMF/OVMF_CODE_4M.fd"),
    },
];
