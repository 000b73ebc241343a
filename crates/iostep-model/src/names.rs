//! Values that have a name on the command line, in job files and in results.

/// A word that names none of the values it was taken for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: no {what}; choose {choices}")]
pub struct UnknownName {
    /// The word.
    pub name: String,
    /// What it should have named.
    pub what: &'static str,
    /// The names that there are.
    pub choices: &'static str,
}

/// Gives an enum of plain values `ALL`, in the order of the list, `name()`, which people read and
/// tables store, and its reverse, `from_name()`.
#[macro_export]
macro_rules! listed {
    ($type:ident, $($variant:ident = $name:literal),+ $(,)?) => {
        impl $type {
            pub const ALL: [$type; [$($name),+].len()] = [$($type::$variant),+];

            pub fn name(self) -> &'static str {
                match self { $($type::$variant => $name),+ }
            }

            #[allow(dead_code, reason = "some are only written")]
            pub fn from_name(name: &str) -> Option<$type> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }
        }
    };
}

/// The same, and `FromStr`, which takes either case. In files they go by that name.
macro_rules! named {
    ($type:ident, $what:literal,
     $first:ident = $first_name:literal $(, $variant:ident = $name:literal)* $(,)?) => {
        $crate::listed! { $type, $first = $first_name $(, $variant = $name)* }

        impl $type {
            /// Every name, as help and errors list them.
            pub const CHOICES: &'static str = concat!($first_name $(, ", ", $name)*);
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(
                &self,
                serializer: S,
            ) -> std::result::Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(
                deserializer: D,
            ) -> std::result::Result<$type, D::Error> {
                let name = <std::borrow::Cow<'_, str>>::deserialize(deserializer)?;
                name.parse().map_err(serde::de::Error::custom)
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::names::UnknownName;

            fn from_str(name: &str) -> std::result::Result<$type, Self::Err> {
                let mut all = $type::ALL.into_iter();
                let found = all.find(|value| value.name().eq_ignore_ascii_case(name));
                found.ok_or_else(|| $crate::names::UnknownName {
                    name: name.to_owned(),
                    what: $what,
                    choices: $type::CHOICES,
                })
            }
        }
    };
}

pub(crate) use named;
