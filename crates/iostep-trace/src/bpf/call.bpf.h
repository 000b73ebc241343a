/* SPDX-License-Identifier: GPL-2.0 */
/* Which system call a thread is in, and its arguments. */
#ifndef IOSTEP_CALL_H
#define IOSTEP_CALL_H

#if defined(__TARGET_ARCH_x86)
/* Of the registers that a tracepoint hands over, which can be read without a call. */
static __always_inline int syscall_left(struct pt_regs *regs)
{
	return (int)regs->orig_ax;
}
static __always_inline int syscall_of(struct pt_regs *regs)
{
	return (int)BPF_CORE_READ(regs, orig_ax);
}
static __always_inline __u64 syscall_arg0(struct pt_regs *regs)
{
	return BPF_CORE_READ(regs, di);
}
static __always_inline __u64 syscall_arg1(struct pt_regs *regs)
{
	return BPF_CORE_READ(regs, si);
}
static __always_inline __u64 syscall_arg2(struct pt_regs *regs)
{
	return BPF_CORE_READ(regs, dx);
}
static __always_inline __u64 syscall_arg3(struct pt_regs *regs)
{
	return BPF_CORE_READ(regs, r10);
}
static __always_inline __u64 syscall_arg5(struct pt_regs *regs)
{
	return BPF_CORE_READ(regs, r9);
}
#else
static __always_inline int syscall_left(struct pt_regs *regs)
{
	return regs->syscallno;
}
static __always_inline int syscall_of(struct pt_regs *regs)
{
	return BPF_CORE_READ(regs, syscallno);
}
static __always_inline __u64 syscall_arg0(struct pt_regs *regs)
{
	return BPF_CORE_READ(regs, orig_x0);
}
static __always_inline __u64 syscall_arg1(struct pt_regs *regs)
{
	return BPF_CORE_READ(regs, user_regs.regs[1]);
}
static __always_inline __u64 syscall_arg2(struct pt_regs *regs)
{
	return BPF_CORE_READ(regs, user_regs.regs[2]);
}
static __always_inline __u64 syscall_arg3(struct pt_regs *regs)
{
	return BPF_CORE_READ(regs, user_regs.regs[3]);
}
static __always_inline __u64 syscall_arg5(struct pt_regs *regs)
{
	return BPF_CORE_READ(regs, user_regs.regs[5]);
}
#endif

#endif
