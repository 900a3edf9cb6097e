//! What the image is made by.

use crate::tools::setup::{Need, exists, runs};

/// What makes the image, and what tries it out.
pub(super) const NEEDS: &[Need] = &[
    Need {
        package: "mmdebstrap",
        reason: "puts Debian's packages together",
        there: || runs("mmdebstrap", "--version"),
    },
    Need {
        package: "debian-archive-keyring",
        reason: "says which packages are Debian's",
        there: || exists("/usr/share/keyrings/debian-archive-keyring.gpg"),
    },
    Need { package: "squashfs-tools", reason: "packs the system", there: || exists("/usr/bin/mksquashfs") },
    Need {
        package: "binutils",
        reason: "takes out of the daemon what only a debugger reads",
        there: || runs("strip", "--version"),
    },
    Need { package: "fdisk", reason: "divides the disk", there: || exists("/usr/sbin/sfdisk") },
    Need {
        package: "dosfstools",
        reason: "makes the boot partition",
        there: || exists("/usr/sbin/mkfs.vfat"),
    },
    Need { package: "mtools", reason: "fills the boot partition", there: || exists("/usr/bin/mcopy") },
    Need {
        package: "grub-common",
        reason: "makes the boot loader",
        there: || exists("/usr/bin/grub-mkimage"),
    },
    Need {
        package: "grub-pc-bin",
        reason: "the boot loader for BIOS",
        there: || exists("/usr/lib/grub/i386-pc/boot.img"),
    },
    Need {
        package: "grub-efi-amd64-bin",
        reason: "the boot loader for UEFI",
        there: || exists("/usr/lib/grub/x86_64-efi/moddep.lst"),
    },
    Need {
        package: "qemu-utils",
        reason: "makes a qcow2 of the disk",
        there: || runs("qemu-img", "--version"),
    },
    Need { package: "rauc", reason: "makes and signs updates", there: || runs("rauc", "--version") },
    Need { package: "openssl", reason: "makes the keys of updates", there: || runs("openssl", "version") },
    Need {
        package: "openssh-client",
        reason: "brings keys, and comes in by them",
        there: || runs("ssh", "-V"),
    },
    Need {
        package: "qemu-system-x86",
        reason: "runs the image",
        there: || runs("qemu-system-x86_64", "--version"),
    },
    Need {
        package: "ovmf",
        reason: "firmware to start it by UEFI",
        there: || exists("/usr/share/OVMF/OVMF_CODE_4M.fd"),
    },
];
