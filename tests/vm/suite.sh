# SPDX-License-Identifier: GPL-2.0-or-later
# The suite of socket behaviours with its arguments, to look at: tools/vm.sh --raw -- suite.sh [NAME]
exec suite "$@"
