//! What a system call asks for with its arguments, by the table of calls.

use super::OpenFlags;
use super::arguments::{Arguments, Reason};
use super::calls::{Syscall, calls};
use super::constants::*;
use super::operation::Direction::{Read, Write};
use super::operation::{LockKind, Operation};
use super::raw::Action;

const CREAT: OpenFlags =
    OpenFlags(OpenFlags::O_WRONLY.0 | OpenFlags::O_CREAT.0 | OpenFlags::O_TRUNC.0);

macro_rules! action {
    ($from:ident $call:ident $operation:ident) => {
        return Err("no call of a program")
    };
    ($from:ident $call:ident $operation:ident = $method:ident($($argument:expr),*)) => {
        $from.$method($($argument),*)?
    };
    ($from:ident $call:ident $operation:ident {
        $($field:ident: $method:ident($($argument:expr),*)),*
    }) => {
        Action::Operation(Syscall::$call, Operation::$operation {
            $($field: $from.$method($($argument),*)?),*
        })
    };
}

macro_rules! define {
    ($($(#[$about:meta])* $call:ident = $name:literal $($other:literal)* [$($number:tt)*]:
        $operation:ident $(= $all:ident $all_arguments:tt)? $({ $($fields:tt)* })?;)+) => {
        impl Syscall {
            /// What it asks for with these arguments.
            ///
            /// Errors: why that cannot be told.
            pub fn action<'a>(self, from: &impl Arguments<'a>) -> Result<Action<'a>, Reason> {
                Ok(match self {
                    $(Syscall::$call => action!(
                        from $call $operation $(= $all $all_arguments)? $({ $($fields)* })?
                    ),)+
                })
            }
        }
    };
}

calls!(define);
