//! `caliban models`: what the provider offers.

use crate::args::ModelsArgs;
use crate::console::Console;
use crate::exit::Failure;
use caliban_harness::options::ModelOptions;
use caliban_harness::{Configuration, provider};

pub(crate) async fn list(
    args: &ModelsArgs,
    options: &ModelOptions,
    configuration: &Configuration,
    console: &mut Console,
) -> Result<(), Failure> {
    let kind = provider::kind(
        args.provider.provider.or(options.provider),
        options.model.as_deref(),
        configuration,
    )?;
    let provider = provider::connect(kind, &[], configuration)?;
    let models = provider.models().await?;
    if args.json {
        let json = serde_json::to_string_pretty(&models)
            .map_err(|error| Failure::Runtime(error.to_string()))?;
        return console.write(&format!("{json}\n"));
    }
    for model in models {
        let window = model
            .context_window
            .map_or_else(String::new, |tokens| format!("\t{tokens} tokens"));
        console.write(&format!("{}{window}\n", model.id))?;
    }
    Ok(())
}
