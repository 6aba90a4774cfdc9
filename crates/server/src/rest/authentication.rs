//! Who a request comes from, and whether that caller may use the route. Both are settled from the head alone, before
//! the body is read.
//!
//! There are no keys yet: every request comes from the caller `local`, who may use every route. Keys are to be looked
//! up in [`authenticate`], their scopes compared in [`authorize`].

use http::request::Parts;

use super::problem::Refusal;
use super::route::Access;
use crate::caller::Caller;

/// The caller of a request, if it may use a route that needs `access`.
pub(crate) fn admit(parts: &Parts, local: &Caller, access: Access) -> Result<Caller, Refusal> {
    let caller = authenticate(parts, local)?;
    authorize(&caller, access)?;
    Ok(caller)
}

/// The caller that the head of a request proves to come from: `local`, without keys.
fn authenticate(_parts: &Parts, local: &Caller) -> Result<Caller, Refusal> {
    Ok(local.clone())
}

/// Whether the caller may use a route that needs `access`. Without keys there is only `local`, who may use every route.
fn authorize(caller: &Caller, access: Access) -> Result<(), Refusal> {
    match access {
        Access::Public => Ok(()),
        _ if &*caller.name == Caller::LOCAL => Ok(()),
        // A caller whose scopes are not known here must not get through.
        Access::Read | Access::Submit | Access::Operate | Access::Administer => {
            Err(Refusal::UnknownScopes(caller.name.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use redrive_core::TenantId;

    use super::*;

    #[test]
    fn every_request_comes_from_local_who_may_use_every_route() {
        let local = Caller::local(TenantId::default_tenant());
        let (parts, ()) = Request::builder().header("authorization", "Bearer x").body(()).unwrap().into_parts();
        for access in [Access::Public, Access::Read, Access::Submit, Access::Operate, Access::Administer] {
            assert_eq!(admit(&parts, &local, access).unwrap(), local, "{access:?}");
        }
    }

    #[test]
    fn a_caller_whose_scopes_are_not_known_may_use_public_routes_only() {
        let other = Caller { name: "other".into(), ..Caller::local(TenantId::default_tenant()) };
        assert!(authorize(&other, Access::Public).is_ok());
        for access in [Access::Read, Access::Submit, Access::Operate, Access::Administer] {
            assert!(authorize(&other, access).is_err(), "{access:?}");
        }
    }
}
