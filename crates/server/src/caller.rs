//! Who calls an operation.

use std::sync::Arc;

use redrive_core::TenantId;

/// Who calls an operation: the tenant whose tasks and policies it works on, and the caller's name within the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Whose tasks, policies and bodies the operation works on.
    pub tenant: TenantId,
    /// The caller's name, for logs and audit.
    pub name: Arc<str>,
}

impl Caller {
    /// The name of the only caller there is without authentication.
    pub const LOCAL: &str = "local";

    /// The caller `local` of a tenant. It may use every operation.
    pub fn local(tenant: TenantId) -> Self {
        Caller { tenant, name: Caller::LOCAL.into() }
    }
}
