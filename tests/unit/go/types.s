# SPDX-License-Identifier: GPL-2.0-or-later
# What debug data says of types that Go's interfaces name at run time, as the seed go-types of fuzz_dwarf:
#	as -o go.o types.s && ld -z noseparate-code -Ttext=0x401000 --section-start=.types=0x401100 -o go-types go.o
	.text
	.globl _start
_start:	ret
.Lend:
	.section .types,"a",@progbits
	.globl runtime.types
runtime.types:
	.zero 0x40
# a type that the debug data leaves out: flags at 20, name at 40
	.zero 20
	.byte 2
	.zero 19
	.long 0x80
	.zero 0x80 - 0x40 - 44
	.byte 0, 12
	.ascii "*map[int]int"
	.zero 16
	.section .debug_abbrev,"",@progbits
	.uleb128 1,0x11
	.byte 1
	.uleb128 0x3,0x8, 0x11,0x1, 0x12,0x7, 0x13,0xb, 0,0
	.uleb128 2,0x24
	.byte 0
	.uleb128 0x3,0x8, 0x3e,0xb, 0xb,0xb, 0x2904,0x1, 0,0
	.uleb128 3,0x13
	.byte 1
	.uleb128 0x3,0x8, 0xb,0xb, 0x2904,0x1, 0,0
	.uleb128 4,0xd
	.byte 0
	.uleb128 0x3,0x8, 0x38,0xb, 0x49,0x13, 0,0
	.uleb128 5,0xf
	.byte 0
	.uleb128 0x3,0x8, 0x49,0x13, 0x2904,0x1, 0,0
	.byte 0
	.section .debug_info,"",@progbits
.Lcu:	.long .Lcuend - .Lbegin
.Lbegin: .short 4
	.long 0
	.byte 8
	.uleb128 1
	.asciz "go"
	.quad _start
	.quad .Lend - _start
	.byte 0x16
.Lint:	.uleb128 2
	.asciz "int"
	.byte 5, 8
	.quad 0x10
.Lpoint: .uleb128 3
	.asciz "main.point"
	.byte 16
	.quad 0x20
	.uleb128 4
	.asciz "X"
	.byte 0
	.long .Lint - .Lcu
	.uleb128 4
	.asciz "Y"
	.byte 8
	.long .Lint - .Lcu
	.byte 0
	.uleb128 5
	.asciz "*main.point"
	.long .Lpoint - .Lcu
	.quad 0x30
	.byte 0
.Lcuend:
